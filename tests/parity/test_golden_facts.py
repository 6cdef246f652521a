"""Behavior of PyTorch's engine in the cases that matter most, and ours.

Each fact is stated, and asked of both: should a later PyTorch change it, the test says
so. Facts about what gradviz does not have, or does otherwise on purpose, are elsewhere.
"""

import re
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from tests.parity.worlds import GRADVIZ, TORCH, World
from tests.warm_python import WITH_PYTORCH, run_warm

pytestmark = pytest.mark.parity

T = TypeVar("T")


def in_both(program: Callable[[World], T]) -> T:
    """Return the result of `program`, which must be the same in both worlds."""
    theirs, ours = program(TORCH), program(GRADVIZ)
    assert ours == theirs
    return theirs


def leaf(world: World, *numbers: float) -> Any:
    return world.tensor(list(numbers or (1.0, 2.0)), requires_grad=True)


def step(world: World, backward: Callable[[Any], Any], *inputs: Any) -> Any:
    """A step with one output; its backward returns one gradient, for all its inputs."""
    inputs = inputs or (leaf(world),)
    (output,) = world.step(lambda grads: (backward(grads[0]),) * len(inputs), 1, inputs)
    return output


def back(world: World, output: Any, **options: Any) -> None:
    gradient = world.tensor([1.0, 1.0])
    world.lib.autograd.backward(output, gradient, **options)


# --- where, and in which order ------------------------------------------------------


def test_a_backward_on_the_cpu_runs_on_the_calling_thread():
    """G1."""

    def program(world):
        threads = []
        back(world, step(world, lambda grad: threads.append(threading.get_ident())))
        return threads == [threading.get_ident()]

    assert in_both(program)


@pytest.mark.parametrize(
    ("num_nested", "num_threads"),
    [(59, 1), (60, 1), (61, 2), (121, 2), (122, 3), (183, 4)],
)
def test_sixty_backwards_nest_on_a_thread_before_the_next_takes_over(
    num_nested, num_threads
):
    """G2."""

    def program(world):
        threads = set()

        def descend(depth):
            def backward(grad):
                threads.add(threading.get_ident())
                if depth:
                    with world.lib.enable_grad():
                        back(world, step(world, descend(depth - 1)))
                return grad

            return backward

        back(world, step(world, descend(num_nested)))
        return len(threads)

    assert in_both(program) == num_threads


@pytest.mark.parametrize(
    ("num_leaves", "order"),
    [
        (2, [0, 1]),
        (3, [0, 1, 2]),
        (4, [0, 2, 1, 3]),
        (5, [0, 2, 4, 1, 3]),
        (6, [0, 2, 5, 4, 1, 3]),
        (7, [0, 2, 5, 6, 4, 1, 3]),
        (8, [0, 2, 6, 5, 7, 4, 1, 3]),
        (9, [0, 2, 6, 8, 5, 7, 4, 1, 3]),
        (10, [0, 2, 6, 9, 8, 5, 7, 4, 1, 3]),
    ],
)
def test_equal_leaves_run_in_the_order_of_the_heap(num_leaves, order):
    """G3."""

    def program(world):
        log = []
        leaves = [leaf(world) for _ in range(num_leaves)]
        output = step(world, lambda grad: grad, *leaves)
        for i, one in enumerate(leaves):
            world.before(world.node(one), lambda _, i=i: log.append(i))
        back(world, output)
        return log

    assert in_both(program) == order


def test_a_leaf_runs_before_what_was_made_before_it():
    """G4."""

    def program(world):
        log = []
        a, b = leaf(world), leaf(world)
        u, v = a.sin(), b.cos()
        w = u * v
        total = w.sum()
        for name, x in zip("abuvw", (a, b, u, v, w), strict=True):
            x.register_hook(lambda _, name=name: log.append(name))
        total.backward()
        return log

    assert in_both(program) == ["w", "v", "b", "u", "a"]


def test_sequence_numbers_count_from_0_in_every_thread():
    """G15, Q8; the leaf has the largest number there is."""

    def program(world):
        numbers = []

        def build():
            a = leaf(world)
            b = a.sin()
            c = b * b
            numbers.extend(world.sequence_nr(world.node(x)) for x in (b, c, a))

        thread = threading.Thread(target=build)
        thread.start()
        thread.join()
        return numbers

    assert in_both(program) == [0, 1, 2**64 - 1]


# --- hooks --------------------------------------------------------------------------


def hooked_pair(world: World) -> tuple[list[str], Any, Any, Any]:
    """A leaf and its clone with every kind of hook, and the sum of the clone."""
    log: list[str] = []
    a = leaf(world)
    b = a.clone()
    nodes = {"b": world.node(b), "acc": world.node(a)}
    for name in ("b.tensor1", "b.tensor2"):
        b.register_hook(lambda _, name=name: log.append(name))
    a.register_hook(lambda _: log.append("a.tensor"))
    world.after_accumulation(a, lambda _: log.append("a.accumulated"))
    for name, node in nodes.items():
        world.before(node, lambda _, name=name: log.append(f"{name}.before"))
        world.after(
            node,
            lambda returned, given, name=name: log.append(
                f"{name}.after {len(returned)} {len(given)}"
            ),
        )
    return log, a, b, b.sum()


def test_hooks_run_from_the_tensor_inwards():
    """G5: tensor, before the node, after it; a leaf's own before those after it."""

    def program(world):
        log, _, _, c = hooked_pair(world)
        c.backward()
        return log

    assert in_both(program) == [
        "b.tensor1",
        "b.tensor2",
        "b.before",
        "b.after 1 1",
        "a.tensor",
        "acc.before",
        "a.accumulated",
        "acc.after 0 1",
    ]


def test_the_requested_inputs_decide_which_hooks_run():
    """G6."""

    def program(world, ask):
        log, a, b, c = hooked_pair(world)
        ask(world.lib.autograd, a, b, c)
        return [entry.split()[0] for entry in log]

    tensor = ["b.tensor1", "b.tensor2"]
    assert in_both(lambda w: program(w, lambda ag, a, b, c: ag.grad(c, b))) == tensor
    assert in_both(lambda w: program(w, lambda ag, a, b, c: ag.grad(c, (a, b)))) == [
        *tensor,
        "b.before",
        "b.after",
        "a.tensor",
    ]
    assert in_both(
        lambda w: program(w, lambda ag, a, b, c: ag.backward(c, inputs=b))
    ) == [*tensor, "b.before", "b.after"]


def test_a_gradient_is_captured_before_the_hooks_of_a_node_that_also_runs():
    """G6, I5: and after them where the node does not run."""

    def program(world):
        a = leaf(world, 3.0)
        b = a * 2.0
        c = b.sum()
        b.register_hook(lambda grad: grad * 10.0)
        grad = world.lib.autograd.grad
        alone = grad(c, b, retain_graph=True)
        both = grad(c, (b, a))
        return [world.numbers(one) for one in (*alone, *both)]

    assert in_both(program) == [[10.0], [1.0], [20.0]]


def test_a_hook_removed_by_an_earlier_one_still_runs_this_time():
    """E3."""

    def program(world):
        log = []
        a = leaf(world)
        total = a.sum()

        def first(_):
            log.append(1)
            handle.remove()

        a.register_hook(first)
        handle = a.register_hook(lambda _: log.append(2))
        total.backward(retain_graph=True)
        total.backward()
        return log

    assert in_both(program) == [1, 2, 1]


def test_hooks_see_undefined_gradients_as_none():
    """E3, E9."""

    def program(world):
        log = []
        a = leaf(world)
        b = a.clone()
        c = step(world, lambda _: None, b)
        b.register_hook(log.append)
        a.register_hook(log.append)
        world.after_accumulation(a, lambda x: log.append(x.grad))
        back(world, c)
        return log, a.grad

    assert in_both(program) == ([None, None, None], None)


# --- passes inside passes -----------------------------------------------------------


def test_a_callback_runs_at_the_end_of_the_pass_that_queued_it():
    """G7: an inner one before the inner call returns; one may queue another."""

    def program(world):
        log = []

        def queue(name, then=None):
            def callback():
                log.append((name, world.task() - base[0]))
                if then:
                    queue(then)

            world.queue_callback(callback)

        def inner(grad):
            queue("inner")
            return grad

        def outer(grad):
            base.append(world.task())
            queue("outer", then="late")
            with world.lib.enable_grad():
                back(world, step(world, inner))
            log.append("inner has returned")
            return grad

        base = []
        a = leaf(world)
        a.register_hook(lambda _: log.append("leaf"))
        back(world, step(world, outer, a))
        return log

    assert in_both(program) == [
        ("inner", 1),
        "inner has returned",
        "leaf",
        ("outer", 0),
        ("late", 0),
    ]


def test_no_callback_runs_once_a_pass_has_failed():
    """G7, R5."""

    def program(world):
        log = []

        def fail(grad):
            world.queue_callback(lambda: log.append("called"))
            raise ValueError

        with pytest.raises(ValueError):  # noqa: PT011 - it has no message
            back(world, step(world, fail))
        return log

    assert in_both(program) == []


def test_an_error_of_a_callback_reaches_the_caller():
    """P4."""

    def program(world):
        log = []

        def call(number):
            log.append(number)
            if number == 1:
                raise ArithmeticError("no")

        def queue(grad):
            for number in range(3):
                world.queue_callback(lambda number=number: call(number))
            return grad

        with pytest.raises(ArithmeticError, match="no"):
            back(world, step(world, queue))
        return log

    assert in_both(program) == [0, 1]


def test_passes_are_numbered_and_a_nested_one_hides_its_parent():
    """G8."""

    def program(world):
        log = []

        def inner(grad):
            log.append(world.task())
            return grad

        def outer(grad):
            log.append(world.task())
            with world.lib.enable_grad():
                back(world, step(world, inner))
            log.append(world.task())
            return grad

        log.append(world.task())
        back(world, step(world, outer))
        log.append(world.task())
        first = log[1]
        return [log[0], *(task - first for task in log[1:4]), log[4]]

    assert in_both(program) == [-1, 0, 1, 0, -1]


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradient_mode_inside_a_pass_is_create_graph(create_graph):
    """G8."""

    def program(world):
        modes = []

        def note(grad):
            modes.append(world.lib.is_grad_enabled())
            return grad

        back(world, step(world, note), create_graph=create_graph)
        return [*modes, world.lib.is_grad_enabled()]

    assert in_both(program) == [create_graph, True]


def test_checkpoints_are_valid_only_where_all_passes_are_unrestricted():
    """K1."""

    def program(world):
        log = []
        autograd = world.lib.autograd

        def note(grad):
            log.append(world.is_checkpoint_valid())
            return grad

        def descend(grad):
            with world.lib.enable_grad():
                back(world, step(world, note))
            return grad

        a = leaf(world)
        output = step(world, descend, step(world, note, a))
        back(world, output, retain_graph=True)
        gradient = world.tensor([1.0, 1.0])
        autograd.grad(output, a, gradient, retain_graph=True)
        back(world, output, inputs=[a])
        return [*log, world.is_checkpoint_valid()]

    assert in_both(program) == [True, True, False, False, False, False, True]


def test_a_child_can_run_a_backward_unless_its_parent_had_engine_threads():
    """G14, L9: sixty-one nested backwards make one."""
    done = run_warm("-m", "tests.parity.forking", modules=WITH_PYTORCH)
    assert done.exit_code == 0, done.errors
    children = done.output.splitlines()
    assert len(children) == 4  # two of each world
    for before, after in (children[:2], children[2:]):
        assert before == "fine"
        assert after.startswith(
            "Unable to handle autograd's threading in combination with fork-based "
            "multiprocessing"
        )


# --- failing ------------------------------------------------------------------------


def test_nothing_runs_after_a_failure():
    """G11: the younger of two ready nodes fails, the older never runs."""

    def program(world):
        log = []

        def older(grad):
            log.append("older")
            return grad

        def younger(grad):
            log.append("younger")
            raise LookupError("younger")

        a, b = leaf(world), leaf(world)
        u = step(world, older, a)
        v = step(world, younger, b)
        with pytest.raises(LookupError, match="younger"):
            back(world, step(world, lambda grad: grad, u, v))
        return log, a.grad, b.grad

    assert in_both(program) == (["younger"], None, None)


def test_gradients_accumulated_before_a_failure_are_kept():
    """A leaf is reached before an older node fails."""

    def program(world):
        def fail(grad):
            raise LookupError("older")

        a, b = leaf(world), leaf(world)
        u = step(world, fail, a)
        output = step(world, lambda grad: grad, u, b)
        for _ in range(2):
            with pytest.raises(LookupError, match="older"):
                back(world, output, retain_graph=True)
        return a.grad, world.numbers(b.grad)

    assert in_both(program) == (None, [2.0, 2.0])


def test_an_error_of_a_nested_pass_is_the_outer_one_s_too():
    """R6."""

    def program(world):
        def fail(grad):
            raise LookupError("inner")

        def descend(grad):
            with world.lib.enable_grad():
                back(world, step(world, fail))

        a = leaf(world)
        with pytest.raises(LookupError, match="inner"):
            back(world, step(world, descend, a))
        return a.grad

    assert in_both(program) is None


def test_a_node_may_survive_the_failure_of_a_pass_that_it_called():
    def program(world):
        def fail(grad):
            raise LookupError("inner")

        def descend(grad):
            with world.lib.enable_grad(), pytest.raises(LookupError):
                back(world, step(world, fail))
            return grad

        a = leaf(world)
        back(world, step(world, descend, a))
        return world.numbers(a.grad)

    assert in_both(program) == [1.0, 1.0]


def test_a_warning_arrives_although_the_pass_fails():
    """G13."""

    def program(world):
        def warn(grad):
            warnings.warn("careful", UserWarning, stacklevel=1)
            return grad

        def fail(grad):
            raise LookupError("older")

        output = step(world, warn, step(world, fail))
        with (
            pytest.warns(UserWarning, match="careful"),
            pytest.raises(LookupError, match="older"),
        ):
            back(world, output)

    in_both(program)


# --- gradients ----------------------------------------------------------------------


def test_eight_threads_may_go_through_one_graph_at_once():
    """G15: the sum is exact."""

    def program(world):
        a = leaf(world, 3.0)
        total = (a * a * 1.5).sum()
        threads = [
            threading.Thread(target=lambda: total.backward(retain_graph=True))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return world.numbers(a.grad)

    assert in_both(program) == [72.0]


def test_a_gradient_of_integers_is_cast_for_a_leaf_of_floats():
    """G18."""

    def program(world):
        a = leaf(world)
        back(world, step(world, lambda _: world.array([3, 4], "int64"), a))
        return world.numbers(a.grad), str(a.grad.dtype).rpartition(".")[2]

    assert in_both(program) == ([3.0, 4.0], "float64")


def test_a_first_gradient_of_another_precision_is_cast():
    """G18."""

    def program(world):
        seen = []
        lib = world.lib
        a = lib.tensor([1.0, 2.0], requires_grad=True)
        b = a * 2
        b.register_hook(lambda grad: seen.append(str(grad.dtype).rpartition(".")[2]))
        b.backward(world.tensor([1.0, 2.0]))
        return seen, world.numbers(a.grad)

    assert in_both(program) == (["float32"], [2.0, 4.0])


def test_a_gradient_that_was_broadcast_is_summed():
    """V3."""

    def program(world):
        a = leaf(world)
        wide = [[1.0, 2.0], [3.0, 4.0]]
        back(world, step(world, lambda _: world.array(wide, "float64"), a))
        return world.numbers(a.grad)

    assert in_both(program) == [4.0, 6.0]


def test_the_gradient_of_a_leaf_keeps_its_identity():
    """N1: a plain backward adds in place, one with create_graph does not."""

    def program(world):
        a = leaf(world)
        total = (a * a).sum()
        total.backward(retain_graph=True)
        first = a.grad
        total.backward(retain_graph=True)
        second = a.grad
        with warnings.catch_warnings(action="ignore"):
            total.backward(create_graph=True)
        return second is first, a.grad is first, world.numbers(first)

    assert in_both(program) == (True, False, [4.0, 8.0])


def test_gradients_that_the_user_holds_never_change():
    """N1, S3: the first gradient, what a node was given, what a hook was given."""

    def program(world):
        held = []

        def hold(grad):
            held.append(grad)
            return grad

        a = leaf(world)
        a.register_hook(held.append)
        output = step(world, hold, a, a)
        gradient = world.tensor([1.0, 1.0])
        for create_graph in (False, True, False):
            with warnings.catch_warnings(action="ignore"):
                world.lib.autograd.backward(
                    output, gradient, retain_graph=True, create_graph=create_graph
                )
        return [world.numbers(one) for one in (gradient, *held, a.grad)]

    assert in_both(program) == [
        [1.0, 1.0],
        *[[1.0, 1.0], [2.0, 2.0]] * 3,
        [6.0, 6.0],
    ]


def test_the_gradient_that_create_graph_leaves_can_be_differentiated():
    def program(world):
        a = leaf(world)
        with warnings.catch_warnings(action="ignore"):
            (a * a * a).sum().backward(create_graph=True)
        (second,) = world.lib.autograd.grad(a.grad.sum(), a)
        return world.numbers(second)

    assert in_both(program) == [6.0, 12.0]


# --- looking on ---------------------------------------------------------------------


def test_a_pass_says_whether_it_keeps_its_graph():
    """K2, G8: and outside of any that one would."""

    def program(world):
        log = [world.keeps_graph()]
        output = step(world, lambda _: log.append(world.keeps_graph()))
        back(world, output, retain_graph=True)
        back(world, output)
        return log

    assert in_both(program) == [True, True, False]


def test_a_pass_says_which_nodes_it_will_run():
    """K3."""

    def program(world):
        log = []
        a, b, c = leaf(world), leaf(world), leaf(world)
        u, v = step(world, lambda grad: grad, a), step(world, lambda grad: grad, b)
        elsewhere = step(world, lambda grad: grad, c)

        def ask(grad):
            nodes = map(world.node, (u, v, elsewhere, a, b, c))
            log.append([world.will_run(node) for node in nodes])
            return grad

        output = step(world, ask, u, v)
        back(world, output, retain_graph=True)
        back(world, output, inputs=[a])
        return log

    assert in_both(program) == [
        [True, True, False, True, True, False],
        [True, False, False, True, False, False],
    ]


def complaints(world: World, fail: Callable[[World], None]) -> tuple[str, list[str]]:
    """Return the error of `fail` in anomaly mode, and its first warning lines."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of the NaN itself
        warnings.simplefilter("always", UserWarning)
        with pytest.raises(RuntimeError) as error, world.lib.autograd.detect_anomaly():
            fail(world)
    return str(error.value), [
        re.split(r"\n| \(Triggered internally", str(one.message).strip())[0]
        for one in caught
        if one.category is UserWarning
    ]


ANOMALY = (
    "Anomaly Detection has been enabled. This mode will increase the runtime and "
    "should only be enabled for debugging."
)


def test_anomaly_detection_names_the_node_that_made_a_nan():
    """E7, K8."""

    def fail(world):
        a = leaf(world, 0.0, 1.0)
        (a.sqrt() * 0.0).sum().backward()

    error, warned = in_both(lambda world: complaints(world, fail))

    assert error == "Function 'SqrtBackward0' returned nan values in its 0th output."
    assert warned[0] == ANOMALY
    assert warned[1].startswith("Error detected in SqrtBackward0. Traceback of forward")


def test_anomaly_detection_names_the_node_of_any_error():
    """R1, K8: and a node of which nothing is known."""

    def fail(world):
        a = leaf(world)
        with world.lib.autograd.set_detect_anomaly(False):
            b = a.exp()
        c = b * 2.0
        b.register_hook(refuse)
        c.sum().backward()

    def refuse(_):
        raise RuntimeError("no")

    error, warned = in_both(lambda world: complaints(world, fail))

    assert error == "no"
    assert warned[1] == (
        "Error detected in ExpBackward0. No forward pass information available. "
        "Enable detect anomaly during forward pass for more information."
    )
