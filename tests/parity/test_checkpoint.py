"""Checkpointing does what it does in PyTorch: results, runs, mistakes."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import pytest

from tests.parity.outcomes import same_in_both

pytestmark = pytest.mark.parity

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__name__] = function
    return function


def leaf(lib: Any, *numbers: float) -> Any:
    numbers = numbers or (0.5, 2.0)
    return lib.tensor(numbers, dtype=lib.float64, requires_grad=True)


def counted(function: Callable[..., Any]) -> tuple[Callable[..., Any], list[str]]:
    """`function`, and a list that grows when it begins and when it ends."""
    log: list[str] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        log.append("begins")
        result = function(*args, **kwargs)
        log.append("ends")
        return result

    return call, log


def several(x: Any) -> Any:
    return (x.exp() * x).sin() * x.cos()


# --- both variants --------------------------------------------------------------------


def plain_backward(lib: Any, *, use_reentrant: bool) -> Any:
    run, log = counted(several)
    x = leaf(lib)
    checkpoint = lib.utils.checkpoint.checkpoint
    y = checkpoint(run, x, use_reentrant=use_reentrant)
    y.sum().backward()
    return y.detach(), x.grad, log


def arguments_of_all_kinds(lib: Any, *, use_reentrant: bool) -> Any:
    def run(x, factor, y, words):
        return x.sin() * factor * y.cos(), len(words)

    x, y = leaf(lib), leaf(lib)
    checkpoint = lib.utils.checkpoint.checkpoint
    result, length = checkpoint(run, x, 3, y, ["a"], use_reentrant=use_reentrant)
    result.sum().backward()
    return length, x.grad, y.grad


def weights_from_outside(lib: Any, *, use_reentrant: bool) -> Any:
    x, weight = leaf(lib), leaf(lib, 3.0, 4.0)
    checkpoint = lib.utils.checkpoint.checkpoint
    y = checkpoint(lambda x: (x * weight).sin(), x, use_reentrant=use_reentrant)
    y.sum().backward()
    return x.grad, weight.grad


def one_in_another(lib: Any, *, use_reentrant: bool) -> Any:
    checkpoint = lib.utils.checkpoint.checkpoint
    inner, log = counted(lambda x: x.sin().exp())

    def outer(x):
        return checkpoint(inner, x.cos(), use_reentrant=use_reentrant).tanh()

    x = leaf(lib)
    checkpoint(outer, x, use_reentrant=use_reentrant).sum().backward()
    return x.grad, log


def one_after_another(lib: Any, *, use_reentrant: bool) -> Any:
    checkpoint = lib.utils.checkpoint.checkpoint
    x = leaf(lib)
    y = x
    for _ in range(4):
        y = checkpoint(several, y, use_reentrant=use_reentrant)
    y.sum().backward()
    return x.grad


def segments(lib: Any, *, use_reentrant: bool) -> Any:
    steps = [lambda x, f=factor: (x * f).sin() for factor in (1, 2, 3, 4, 5)]
    x = leaf(lib)
    run = lib.utils.checkpoint.checkpoint_sequential
    results = [run(steps, n, x, use_reentrant=use_reentrant) for n in (1, 2, 5)]
    sum(results).sum().backward()
    return [one.detach() for one in results], x.grad


def the_same_random_numbers(lib: Any, *, use_reentrant: bool) -> Any:
    x = lib.ones(20, dtype=lib.float64, requires_grad=True)
    checkpoint = lib.utils.checkpoint.checkpoint
    lib.manual_seed(3)
    y = checkpoint(
        lambda x: x * x.exp() * lib.rand(20, dtype=lib.float64),
        x,
        use_reentrant=use_reentrant,
    )
    after = lib.rand(3)
    lib.manual_seed(3)
    factor = lib.rand(20, dtype=lib.float64)
    y.sum().backward()
    then = lib.rand(3)
    return (
        lib.allclose(x.grad, factor * 2 * lib.ones(20).double().exp()),
        lib.allclose(after, then),
    )


def without_gradient_mode(lib: Any, *, use_reentrant: bool) -> Any:
    with lib.no_grad():
        return lib.utils.checkpoint.checkpoint(
            several, leaf(lib), use_reentrant=use_reentrant
        )


def inputs_without_gradients(lib: Any, *, use_reentrant: bool) -> Any:
    weight = leaf(lib)
    y = lib.utils.checkpoint.checkpoint(
        lambda x: (x * weight).sin(),
        lib.ones(2, dtype=lib.float64),
        use_reentrant=use_reentrant,
    )
    if y.requires_grad:
        y.sum().backward()
    return y.requires_grad, weight.grad


def under_grad(lib: Any, *, use_reentrant: bool) -> Any:
    x = leaf(lib)
    y = lib.utils.checkpoint.checkpoint(several, x, use_reentrant=use_reentrant)
    return lib.autograd.grad(y.sum(), x)


def with_inputs(lib: Any, *, use_reentrant: bool) -> Any:
    x = leaf(lib)
    y = lib.utils.checkpoint.checkpoint(several, x, use_reentrant=use_reentrant)
    y.sum().backward(inputs=[x])
    return x.grad


def twice_through_a_kept_graph(lib: Any, *, use_reentrant: bool) -> Any:
    run, log = counted(several)
    x = leaf(lib)
    y = lib.utils.checkpoint.checkpoint(run, x, use_reentrant=use_reentrant)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return x.grad, log


def twice_through_a_freed_graph(lib: Any, *, use_reentrant: bool) -> Any:
    x = leaf(lib)
    y = lib.utils.checkpoint.checkpoint(several, x, use_reentrant=use_reentrant)
    y.sum().backward()
    y.sum().backward()


def a_function_that_raises(lib: Any, *, use_reentrant: bool) -> Any:
    lib.utils.checkpoint.checkpoint(
        lambda x: 1 / 0, leaf(lib), use_reentrant=use_reentrant
    )


def an_unknown_keyword(lib: Any, *, use_reentrant: bool) -> Any:
    return lib.utils.checkpoint.checkpoint(
        lambda x, **kwargs: x * len(kwargs),
        leaf(lib),
        use_reentrant=use_reentrant,
        unknown=3,
    )


for both in (
    plain_backward,
    arguments_of_all_kinds,
    weights_from_outside,
    one_in_another,
    one_after_another,
    segments,
    the_same_random_numbers,
    without_gradient_mode,
    inputs_without_gradients,
    under_grad,
    with_inputs,
    twice_through_a_kept_graph,
    twice_through_a_freed_graph,
    a_function_that_raises,
    an_unknown_keyword,
):
    for use_reentrant in (True, False):
        kind = "reentrant" if use_reentrant else "not_reentrant"
        PROGRAMS[f"{both.__name__}_{kind}"] = functools.partial(
            both, use_reentrant=use_reentrant
        )


# --- reentrant ------------------------------------------------------------------------


@program
def use_reentrant_not_given(lib):
    x = leaf(lib)
    lib.utils.checkpoint.checkpoint(several, x).sum().backward()
    return x.grad


@program
def segments_with_use_reentrant_not_given(lib):
    x = leaf(lib)
    lib.utils.checkpoint.checkpoint_sequential([several], 1, x).sum().backward()
    return x.grad


@program
def nothing_to_go_back_through(lib):
    y = lib.utils.checkpoint.checkpoint(
        lambda x: x.detach() * 2, leaf(lib), use_reentrant=True
    )
    y.sum().backward()


@program
def reentrant_with_contexts(lib):
    lib.utils.checkpoint.checkpoint(several, leaf(lib), use_reentrant=True, debug=True)


# --- not reentrant --------------------------------------------------------------------


@program
def keywords(lib):
    x, y = leaf(lib), leaf(lib)
    z = lib.utils.checkpoint.checkpoint(
        lambda x, *, factor: (x * factor).sin(), x, factor=y, use_reentrant=False
    )
    z.sum().backward()
    return x.grad, y.grad


@program
def second_derivatives(lib):
    x = leaf(lib)
    y = lib.utils.checkpoint.checkpoint(several, x, use_reentrant=False)
    (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    return first.detach(), lib.autograd.grad(first.sum(), x)


@program
def it_stops_early(lib):
    run, log = counted(lambda x: (x.exp().sin(), log.append("here"))[0])
    x = leaf(lib)
    lib.utils.checkpoint.checkpoint(run, x, use_reentrant=False).sum().backward()
    return x.grad, log


@program
def it_does_not_stop_early_if_told_so(lib):
    run, log = counted(several)
    x = leaf(lib)
    namespace = lib.utils.checkpoint
    with namespace.set_checkpoint_early_stop(False):
        y = namespace.checkpoint(run, x, use_reentrant=False)
    y.sum().backward()
    z = namespace.checkpoint(run, x, use_reentrant=False, early_stop=False)
    z.sum().backward()
    return x.grad, log


@program
def an_inner_checkpoint_stops_the_outer_one(lib):
    checkpoint = lib.utils.checkpoint.checkpoint
    inner, log = counted(several)

    def outer(x):
        result = checkpoint(inner, x.sin(), use_reentrant=False)
        log.append("outer ends")
        return result

    x = leaf(lib)
    checkpoint(outer, x, use_reentrant=False).sum().backward()
    return x.grad, log


@program
def a_backward_inside(lib):
    def run(x):
        y = x.sin()
        z = y.cos()
        (grad,) = lib.autograd.grad(z.sum(), x, retain_graph=True)
        return grad * z

    x = leaf(lib)
    run, log = counted(run)
    lib.utils.checkpoint.checkpoint(run, x, use_reentrant=False).sum().backward()
    return x.grad, log


@program
def a_backward_inside_that_frees(lib):
    def run(x):
        z = x.sin().cos()
        (grad,) = lib.autograd.grad(z.sum(), x)
        return x.cos() * grad

    x = leaf(lib)
    lib.utils.checkpoint.checkpoint(run, x, use_reentrant=False).sum().backward()
    return x.grad


@program
def surroundings_of_both_runs(lib):
    log = []

    @contextlib.contextmanager
    def surrounding(name):
        log.append(f"{name} begins")
        yield
        log.append(f"{name} ends")

    x = leaf(lib)
    lib.utils.checkpoint.checkpoint(
        lambda x: (log.append("runs"), several(x))[1],
        x,
        use_reentrant=False,
        context_fn=lambda: (surrounding("first"), surrounding("second")),
        early_stop=False,
    ).sum().backward()
    return x.grad, log


@program
def surroundings_that_swallow_errors(lib):
    lib.utils.checkpoint.checkpoint(
        lambda x: 1 / 0,
        leaf(lib),
        use_reentrant=False,
        context_fn=lambda: (contextlib.suppress(Exception), contextlib.nullcontext()),
    )


@program
def debug_with_contexts(lib):
    lib.utils.checkpoint.checkpoint(
        several,
        leaf(lib),
        use_reentrant=False,
        debug=True,
        context_fn=lambda: (contextlib.nullcontext(), contextlib.nullcontext()),
    )


@program
def an_unknown_check(lib):
    lib.utils.checkpoint.checkpoint(
        several, leaf(lib), use_reentrant=False, determinism_check="all"
    )


def changing(lib: Any, *functions: Callable[[Any], Any], **options: Any) -> Any:
    """The first run calls the first function, the second the second."""
    calls = iter(functions)
    x = leaf(lib)
    y = lib.utils.checkpoint.checkpoint(
        lambda x: next(calls)(x),  # noqa: PLW0108 - another one each time
        x,
        use_reentrant=False,
        **options,
    )
    try:
        y.sum().backward()
    except RuntimeError as error:
        return type(error).__name__, str(error).partition("\nTip")[0].partition(
            ".\n\n"
        )[0]
    return x.grad


@program
def the_second_run_saves_less(lib):
    return changing(lib, lambda x: x.sin().cos().exp(), lambda x: x.sin())


@program
def the_second_run_saves_more(lib):
    return changing(
        lib, lambda x: x.sin(), lambda x: x.sin().cos().exp(), early_stop=False
    )


@program
def the_second_run_saves_more_and_stops_before(lib):
    return changing(lib, lambda x: x.sin(), lambda x: x.sin().cos().exp())


@program
def the_second_run_saves_another_dtype(lib):
    second = changing(lib, lambda x: x.sin(), lambda x: x.float().sin())
    return second[0], "have different metadata than during the forward" in second[1]


@program
def another_dtype_that_is_not_checked(lib):
    return changing(
        lib, lambda x: x.exp().sin(), lambda x: x.sin().exp(), determinism_check="none"
    )


@program
def what_is_saved_is_asked_for_twice(lib):
    class Custom(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0] * ctx.saved_tensors[0]

    x = leaf(lib)
    lib.utils.checkpoint.checkpoint(
        Custom.apply, x, use_reentrant=False
    ).sum().backward()


@program
def a_group_of_backwards_shares_the_second_run(lib):
    run, log = counted(lambda x: (x.sin(), x.cos()))
    x = leaf(lib)
    namespace = lib.utils.checkpoint
    a, b = namespace.checkpoint(run, x, use_reentrant=False)
    with namespace.GraphExecGroup():
        a.sum().backward()
        b.sum().backward()
    return x.grad, log


@program
def groups_do_not_nest(lib):
    group = lib.utils.checkpoint.GraphExecGroup
    try:
        with group(), group():
            pass
    except RuntimeError as error:
        return str(error).partition("<")[0]


# --- hooks on what is saved -----------------------------------------------------------


@program
def saved_through_hooks(lib):
    log = []

    def pack(x):
        log.append(("pack", x.tolist(), x.requires_grad))
        return x.detach() * 2

    def unpack(x):
        log.append(("unpack", x.tolist()))
        return x / 2

    x = leaf(lib)
    with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    z = y.exp()
    z.sum().backward()
    return x.grad, log


@program
def nested_hooks(lib):
    log = []
    hooks = lib.autograd.graph.saved_tensors_hooks
    x = leaf(lib)
    with hooks(lambda x: log.append("outer") or x, lambda x: x):
        y = x.exp()
        with hooks(lambda x: log.append("inner") or x, lambda x: x):
            z = y.exp()
        z.exp()
    return log


@program
def hooks_for_a_custom_function(lib):
    log = []

    class Custom(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(x, result, None)
            return result

        @staticmethod
        def backward(ctx, grad):
            x, result, _ = ctx.saved_tensors
            return grad * result + 0 * x

    def pack(x):
        log.append((x.tolist(), x.requires_grad))
        return x.detach()

    x = leaf(lib)
    with lib.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        y = Custom.apply(x)
    y.sum().backward()
    return x.grad, log


@program
def an_unpack_hook_that_returns_a_word(lib):
    with lib.autograd.graph.saved_tensors_hooks(lambda x: "word", lambda x: x):
        y = leaf(lib).exp()
    y.sum().backward()


@program
def hooks_that_are_disabled(lib):
    namespace = lib.autograd.graph
    with (
        namespace.disable_saved_tensors_hooks("not here"),
        namespace.saved_tensors_hooks(lambda x: x, lambda x: x),
    ):
        pass


@program
def saved_on_the_cpu(lib):
    x = leaf(lib)
    with lib.autograd.graph.save_on_cpu():
        y = (x * x).exp()
    y.sum().backward()
    return x.grad


@pytest.mark.parametrize("name", PROGRAMS)
def test_checkpoints_do_what_they_do_in_pytorch(name):
    same_in_both(PROGRAMS[name])
