"""A leaf whose elements are replaced keeps what it keeps in PyTorch: hooks, nodes."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.parity.outcomes import same_in_both

pytestmark = pytest.mark.parity

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__name__] = function
    return function


def leaf(lib: Any) -> Any:
    return lib.tensor([1.0, 2.0], requires_grad=True)


def watch(x: Any, seen: list[Any], name: str = "") -> tuple[Any, Any]:
    """Hooks of both kinds on `x`, which say what they see."""
    return (
        x.register_hook(lambda grad: seen.append((f"{name}pre", kind(grad)))),
        x.register_post_accumulate_grad_hook(
            lambda leaf: seen.append((f"{name}post", kind(leaf.grad)))
        ),
    )


def kind(x: Any) -> Any:
    return None if x is None else (str(x.dtype).partition(".")[2], list(x.shape))


def node_of(result: Any) -> Any:
    return result.grad_fn.next_functions[0][0]


# --- other elements -------------------------------------------------------------------


def other_dtype(lib, x):
    x.data = x.data.double()


def other_shape(lib, x):
    x.data = lib.ones(3)


def other_elements(lib, x):
    x.data = lib.ones(2)


def set_to_others(lib, x):
    with lib.no_grad():
        x.set_(lib.ones(2))


def set_to_another_shape(lib, x):
    with lib.no_grad():
        x.set_(lib.ones(3))


def frozen_and_thawed(lib, x):
    x.requires_grad_(False)
    x.requires_grad_()


CHANGES = [
    other_dtype,
    other_shape,
    other_elements,
    set_to_others,
    set_to_another_shape,
    frozen_and_thawed,
]


@pytest.mark.parametrize("change", CHANGES)
def test_hooks_stay_when_elements_change(change):
    def program(lib):
        x, seen = leaf(lib), []
        watch(x, seen, "early ")
        removed = watch(x, seen, "removed ")
        change(lib, x)
        watch(x, seen, "late ")
        for handle in removed:
            handle.remove()
        (x * 2).sum().backward()
        return seen, x.grad

    assert len(same_in_both(program)[0][0]) == 4


@pytest.mark.parametrize("change", CHANGES)
def test_an_older_graph_leads_to_the_leaf_and_its_hooks(change):
    def program(lib):
        x, seen = leaf(lib), []
        y = (x * 3).sum()
        watch(x, seen, "early ")
        change(lib, x)
        watch(x, seen, "late ")
        y.backward()
        return seen, x.grad, kind(x.grad)

    same_in_both(program)


@pytest.mark.parametrize("change", CHANGES)
def test_grad_finds_the_leaf_in_an_older_graph_where_pytorch_does(change):
    def program(lib):
        x = leaf(lib)
        y = (x * 3).sum()
        change(lib, x)
        return lib.autograd.grad(y, x)

    same_in_both(program)


@pytest.mark.parametrize("change", CHANGES)
def test_the_node_is_another_one_where_it_is_in_pytorch(change):
    def program(lib):
        x = leaf(lib)
        y = x * 3
        before = node_of(y)
        change(lib, x)
        return node_of(x * 2) is before

    same_in_both(program)


@pytest.mark.parametrize("change", CHANGES)
def test_a_gradient_from_before_is_added_to_as_in_pytorch(change):
    def program(lib):
        x = leaf(lib)
        (x * 3).sum().backward()
        before = x.grad
        change(lib, x)
        (x * 2).sum().backward()
        return x.grad is before, kind(x.grad), x.grad

    same_in_both(program)


# --- the nodes of a leaf --------------------------------------------------------------


@program
def hooks_of_the_node_go_with_it(lib):
    x, seen = leaf(lib), []
    watch(x, seen)
    y = x * 2
    node_of(y).register_hook(lambda *_: seen.append("after the node"))
    node_of(y).register_prehook(lambda _: seen.append("before the node"))
    y.sum().backward()
    x.data = x.data.double()
    (x * 2).sum().backward()
    return seen


@program
def hooks_of_a_node_that_nobody_holds(lib):
    x, seen = leaf(lib), []
    watch(x, seen)
    node_of(x * 2).register_hook(lambda *_: seen.append("node"))
    (x * 2).sum().backward()
    return seen


@program
def a_node_that_is_held(lib):
    x, seen = leaf(lib), []
    node = node_of(x * 2)
    node.register_hook(lambda *_: seen.append("node"))
    (x * 2).sum().backward()
    return seen, node_of(x * 2) is node


@program
def a_shape_that_a_living_node_does_not_expect(lib):
    x = leaf(lib)
    y = x * 2
    x.data = lib.ones(3)
    (x * 2).sum().backward()
    return y


@program
def one_hook_for_two_leaves_of_which_one_changes(lib):
    x, w, seen = leaf(lib), leaf(lib), []
    lib.autograd.graph.register_multi_grad_hook([x, w], seen.append)
    x.data = x.data.double()
    (x.sum() + w.sum()).backward()
    return len(seen)


@program
def an_edge_from_before(lib):
    x = leaf(lib)
    edge = lib.autograd.graph.get_gradient_edge(x)
    y = (x * 2).sum()
    x.data = x.data.double()
    return lib.autograd.grad(y, edge)


# --- leaves that were none, and the other way round -----------------------------------


@program
def a_frozen_leaf_that_is_changed_in_place_has_no_gradient_hooks_any_more(lib):
    x, w, seen = leaf(lib), leaf(lib), []
    watch(x, seen, "early ")
    x.requires_grad_(False)
    x.mul_(w)
    x.register_hook(lambda _: seen.append("late"))
    (x * 2).sum().backward()
    x.detach_().requires_grad_()
    (x * 2).sum().backward()
    return seen


@program
def a_view_that_a_frozen_leaf_becomes(lib):
    x, w, seen = leaf(lib).detach().view(1, 2).clone(), leaf(lib), []
    x.requires_grad_()
    watch(x, seen)
    x.requires_grad_(False)
    x.mul_(w).t_()
    x.detach_().requires_grad_()
    x.sum().backward()
    return seen


@program
def what_an_op_made_keeps_its_hooks_as_a_leaf(lib):
    x, seen = leaf(lib), []
    y = x * 2
    removed = y.register_hook(lambda _: seen.append("removed"))
    y.register_hook(lambda _: seen.append("kept"))
    z = y.sum()
    y.detach_().requires_grad_()
    (y * 2).sum().backward()
    z.backward(retain_graph=True)
    removed.remove()
    (y * 2).sum().backward()
    z.backward()
    return seen, y.grad, x.grad


@program
def the_base_of_a_changed_view_keeps_its_hooks(lib):
    x, w, seen = leaf(lib), leaf(lib), []
    watch(x, seen)
    x.requires_grad_(False)
    x[:1].mul_(w[:1])
    x.sum().backward()
    x.detach_().requires_grad_()
    x.sum().backward()
    return seen


@program
def copies_have_no_hooks(lib):
    x, seen = leaf(lib), []
    watch(x, seen)
    copy.deepcopy(x).sum().backward()
    x.detach().requires_grad_().sum().backward()
    return seen


# --- modules --------------------------------------------------------------------------


@program
def a_model_in_double_precision(lib):
    model, seen = lib.nn.Linear(2, 1), []
    weight = model.weight
    watch(weight, seen)
    model(lib.ones(1, 2)).sum().backward()
    model.double()
    model(lib.ones(1, 2).double()).sum().backward()
    return seen, model.weight is weight


@program
def a_model_that_is_frozen_and_loaded(lib):
    model, seen = lib.nn.Linear(2, 1), []
    watch(model.weight, seen)
    model.requires_grad_(False).requires_grad_()
    model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()})
    model(lib.ones(1, 2)).sum().backward()
    return seen


@program
def a_model_that_takes_the_tensors_of_another(lib):
    model, seen = lib.nn.Linear(2, 1), []
    watch(model.weight, seen)
    state = {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(state, assign=True)
    model(lib.ones(1, 2)).sum().backward()
    return seen


# --- gradients that were there --------------------------------------------------------


@program
def a_gradient_of_one_element_for_more(lib):
    x = lib.ones(1, requires_grad=True)
    x.sum().backward()
    x.data = lib.ones(3)
    x.sum().backward()


@program
def a_gradient_of_more_for_one_element(lib):
    x = lib.ones(3, requires_grad=True)
    x.sum().backward()
    before = x.grad
    x.data = lib.ones(1)
    x.sum().backward()
    return x.grad, x.grad is before


@program
def a_complex_gradient_for_a_real_one(lib):
    x = leaf(lib)
    x.sum().backward()
    x.data = lib.ones(2).to(lib.complex128)
    (x * 2).sum().abs().backward()


@program
def a_gradient_whose_elements_share_a_place(lib):
    x = leaf(lib)
    x.grad = lib.ones(1).expand(2)
    x.sum().backward()


@program
def a_gradient_of_another_dtype_under_create_graph(lib):
    x = leaf(lib)
    x.sum().backward()
    x.data = x.data.double()
    lib.autograd.backward((x * x).sum(), create_graph=True)
    return kind(x.grad), x.grad


@program
def the_first_gradient_under_create_graph(lib):
    x = leaf(lib)
    lib.autograd.backward((x * x * x).sum(), create_graph=True)
    node = x.grad.grad_fn
    second = lib.autograd.grad(x.grad.sum(), x)
    return x.grad, [one and one.name() for one, _ in node.next_functions], second


@program
def the_first_gradient_under_create_graph_that_needs_none(lib):
    x = leaf(lib)
    lib.autograd.backward((x * 2).sum(), create_graph=True)
    return x.grad, x.grad._version


@program
def the_second_gradient_under_create_graph(lib):
    x = leaf(lib)
    for _ in range(2):
        lib.autograd.backward((x * x).sum(), create_graph=True)
    return x.grad


@program
def the_gradient_of_a_leaf_with_gaps_under_create_graph(lib):
    x = lib.ones(4)[::2].requires_grad_()
    lib.autograd.backward((x * x).sum(), create_graph=True)
    return x.grad


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lib.ones(3, 2),
        lambda lib: lib.ones(2, 3).t(),
        lambda lib: lib.ones(6, 2)[::2],
        lambda lib: lib.ones(3, 1).expand(3, 2),
        lambda lib: lib.ones(4, 2, 3).permute(2, 0, 1),
    ],
    ids=["C order", "transposed", "with gaps", "expanded", "permuted"],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda lib, x: x * lib.ones(x.shape),
        lambda lib, x: x.transpose(0, -1) * lib.ones(x.transpose(0, -1).shape),
        lambda lib, x: x + 1,
        lambda lib, x: x * x,
    ],
    ids=["times", "transposed", "plus", "squared"],
)
def test_a_gradient_lies_in_memory_as_its_leaf_does(make, use, create_graph):
    def program(lib):
        x = make(lib).requires_grad_()
        lib.autograd.backward(use(lib, x).sum(), create_graph=create_graph)
        return x.grad.stride(), x.grad

    same_in_both(program)


# --- set_ -----------------------------------------------------------------------------


@program
def set_where_backward_would_go(lib):
    y = leaf(lib) * 2
    y.set_(lib.ones(3))
    return y


@program
def backward_through_set(lib):
    y = leaf(lib) * 2
    y.set_(lib.ones(2)).sum().backward()


@program
def set_to_what_requires_a_gradient(lib):
    y = lib.ones(2)
    y.set_(leaf(lib))
    return y, y.is_leaf


@program
def set_under_no_grad_keeps_the_place_in_the_graph(lib):
    x = leaf(lib)
    y = x * 2
    with lib.no_grad():
        y.set_(lib.ones(2))
    (y * y).sum().backward()
    return y, x.grad


@program
def set_to_another_dtype(lib):
    lib.ones(2).set_(lib.ones(2).double())


@program
def set_to_integers(lib):
    x = leaf(lib)
    with lib.no_grad():
        x.set_(lib.tensor([1, 2]))


@program
def set_to_a_part_of_itself(lib):
    x = lib.tensor([1.0, 2.0])
    return x.set_(x[1:]), x._version


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_it_does_in_pytorch(name):
    same_in_both(PROGRAMS[name])
