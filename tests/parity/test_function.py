"""Custom functions do what they do in PyTorch, mistakes included.

Left out is what PyTorch only has for vmap and for forward-mode differentiation.
"""

import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tests.parity.outcomes import same_in_both

pytestmark = pytest.mark.parity

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__name__] = function
    return function


def custom(lib: Any, forward: Any = None, backward: Any = None, **more: Any) -> Any:
    """A custom function called ``Custom``; a `setup_context` makes it new style."""
    attributes = {"forward": forward, "backward": backward, **more}
    methods = {
        name: staticmethod(one) if callable(one) else one
        for name, one in attributes.items()
        if one is not None
    }
    return type("Custom", (lib.autograd.Function,), methods)


def leaf(lib: Any, *numbers: float) -> Any:
    numbers = numbers or (1.0, 2.0)
    return lib.tensor(numbers, dtype=lib.float64, requires_grad=True)


def doubled(ctx: Any, x: Any) -> Any:
    return x * 2


def identity(ctx: Any, *grads: Any) -> Any:
    return grads[0]


# --- what works -----------------------------------------------------------------------


@program
def saved_input(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

    x = leaf(lib)
    y = custom(lib, forward, backward).apply(x)
    y.sum().backward()
    return y, x.grad


@program
def saved_result(lib):
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result, len(ctx.saved_tensors) and None

    x = leaf(lib)
    y = custom(lib, forward, backward).apply(x)
    first = lib.autograd.grad(y.sum(), x, create_graph=True)
    second = lib.autograd.grad(first[0].sum(), x)
    return y, first, second, y.grad_fn.saved_tensors[0].grad_fn is y.grad_fn


@program
def three_derivatives(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**4

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 4 * x**3 * grad

    x = leaf(lib)
    y = custom(lib, forward, backward).apply(x).sum()
    results = []
    for _ in range(3):
        (y,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        results.append(y)
    return results


@program
def setup_context(lib):
    log = []

    def forward(x, k=3):
        return x * k

    def setup(ctx, inputs, output):
        log.append([inputs, output])
        ctx.k = inputs[1]

    def backward(ctx, grad):
        log.append(ctx.needs_input_grad)
        return grad * ctx.k, None

    x = leaf(lib)
    function = custom(lib, forward, backward, setup_context=setup)
    results = [function.apply(x), function.apply(x, 4), function.apply(x, k=5)]
    sum(results).sum().backward()
    return results, x.grad, log


@program
def keywords_without_setup_context(lib):
    def forward(ctx, x, k=3):
        return x * k * ctx.needs_input_grad[0]

    def backward(ctx, grad):
        return grad * len(ctx.needs_input_grad), None

    x = leaf(lib)
    y = custom(lib, forward, backward).apply(x, k=4)
    y.sum().backward()
    return y, x.grad


@program
def vjp_instead_of_backward(lib):
    x = leaf(lib)
    y = custom(lib, doubled, vjp=lambda ctx, grad: grad * 5).apply(x)
    y.sum().backward()
    return x.grad


@program
def boxed_gradients(lib):
    def backward(ctx, grads):
        grad = grads.pop()
        return grad * 3

    x = leaf(lib)
    function = custom(lib, doubled, backward, boxed_grads_call=True)
    function.apply(x).sum().backward()
    return x.grad


@program
def saved_tensors_that_can_be_read_once(lib):
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x, None)
        return x * 2

    def backward(ctx, grad):
        seen.append(ctx.saved_tensors)
        seen.append(len(ctx._raw_saved_tensors))
        with pytest.raises(RuntimeError) as refused:
            _ = ctx.saved_tensors
        seen.append(str(refused.value))
        return grad

    function = custom(lib, forward, backward, clear_saved_tensors_on_access=True)
    y = function.apply(leaf(lib)).sum()
    y.backward()
    y = function.apply(leaf(lib))
    seen.append(y.grad_fn.saved_tensors)
    return seen


@program
def what_was_saved_and_can_be_read_once_is_freed_by_who_read_it(lib):
    seen = []

    def forward(ctx, x):
        y = x * 3
        seen.append(weakref.ref(y))
        ctx.save_for_backward(y)
        return x * 2

    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        del y
        seen.append(seen.pop()() is None)
        return grad

    function = custom(lib, forward, backward, clear_saved_tensors_on_access=True)
    function.apply(leaf(lib)).sum().backward()
    return (
        seen,
        function.clear_saved_tensors_on_access,
        (lib.autograd.Function.clear_saved_tensors_on_access),
    )


@program
def what_else_a_forward_may_return(lib):
    log = []

    def forward(ctx, x):
        return x * 2, "word", None, x * 3, 7

    def backward(ctx, *grads):
        log.append(list(grads))
        return grads[0] + grads[3]

    x = leaf(lib)
    results = custom(lib, forward, backward).apply(x)
    (results[0] * results[3]).sum().backward()
    return results, x.grad, log


@program
def a_list_is_no_tuple(lib):
    return custom(lib, lambda ctx, x: [x * 2], identity).apply(leaf(lib))


@program
def nothing_returned(lib):
    return custom(lib, lambda ctx, x: None, identity).apply(leaf(lib))


@program
def integers_returned(lib):
    return custom(lib, lambda ctx, x: (x * 2).long(), identity).apply(leaf(lib))


@program
def one_of_two_outputs_used(lib):
    def backward(ctx, first, second):
        return first + 2 * second

    x = leaf(lib)
    results = custom(lib, lambda ctx, x: (x * 2, x * 3), backward).apply(x)
    results[0].sum().backward()
    return x.grad, [one.output_nr for one in results]


@program
def gradients_not_materialized(lib):
    log = []

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx, first, second):
        log.append(second)
        return first

    x = leaf(lib)
    custom(lib, forward, backward).apply(x)[0].sum().backward()
    return x.grad, log


@program
def not_differentiable(lib):
    log = []

    def forward(ctx, x):
        index = x.argmax()
        fixed = x * 2
        ctx.mark_non_differentiable(index, fixed)
        return x * 3, index, fixed

    def backward(ctx, *grads):
        log.append(list(grads))
        return grads[0]

    x = leaf(lib)
    results = custom(lib, forward, backward).apply(x)
    results[0].sum().backward()
    return results, x.grad, log


@program
def a_returned_input(lib):
    x, y = leaf(lib), leaf(lib).clone()
    function = custom(lib, lambda ctx, x: x, lambda ctx, grad: grad * 3)
    results = [function.apply(x), function.apply(y)]
    sum(results).sum().backward()
    return results, [results[0] is x, results[1] is y], x.grad, x, y


@program
def a_returned_input_that_is_not_differentiable(lib):
    def forward(ctx, x):
        ctx.mark_non_differentiable(x)
        return x

    x = leaf(lib)
    result = custom(lib, forward, identity).apply(x)
    return result, result is x, x


@program
def one_tensor_returned_twice(lib):
    def forward(ctx, x):
        result = x * 2
        return result, result

    def backward(ctx, first, second):
        return first + 10 * second

    x = leaf(lib)
    first, second = custom(lib, forward, backward).apply(x)
    (first + second).sum().backward()
    return first is second, first.output_nr, x.grad


@program
def changed_in_place(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    x = leaf(lib)
    y = x.clone()
    z = custom(lib, forward, lambda ctx, grad: grad * 2).apply(y)
    z.sum().backward()
    return z is y, y, x.grad, y._version


@program
def changed_in_place_without_gradients(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    x = lib.ones(2)
    y = custom(lib, forward, identity).apply(x)
    return y is x, y


@program
def a_view_changed_in_place(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    x = leaf(lib)
    y = x.clone()
    view = y[:1]
    custom(lib, forward, lambda ctx, grad: grad * 2).apply(view)
    y.sum().backward()
    return x.grad, y, view


@program
def without_gradient_mode(lib):
    log = []

    def forward(ctx, x):
        log.append((ctx.needs_input_grad, lib.is_grad_enabled()))
        ctx.save_for_backward(x)
        return x * 2

    with lib.no_grad():
        y = custom(lib, forward, identity).apply(leaf(lib))
    return y, log


@program
def without_inputs_that_need_gradients(lib):
    function = custom(lib, doubled, identity)
    return function.apply(lib.ones(2)), function.apply(lib.ones(2)).grad_fn


@program
def gradient_mode_inside(lib):
    modes = []

    def forward(ctx, x):
        modes.append(lib.is_grad_enabled())
        return x * 2

    def backward(ctx, grad):
        modes.append(lib.is_grad_enabled())
        return grad * 2

    x = leaf(lib)
    function = custom(lib, forward, backward)
    function.apply(x).sum().backward()
    lib.autograd.grad(function.apply(x).sum(), x, create_graph=True)
    return modes


@program
def none_as_gradient(lib):
    x = leaf(lib)
    y = custom(lib, doubled, lambda ctx, grad: None).apply(x)
    y.sum().backward()
    return x.grad


@program
def none_for_what_is_no_tensor(lib):
    def forward(ctx, a, x, b):
        return x * a * b

    x = leaf(lib)
    y = custom(lib, forward, lambda ctx, grad: (None, grad * 6, None)).apply(2, x, 3)
    y.sum().backward()
    return x.grad, len(y.grad_fn.next_functions), y.grad_fn.needs_input_grad


@program
def further_gradients_of_none(lib):
    x = leaf(lib)
    y = custom(lib, doubled, lambda ctx, grad: (grad, None, None)).apply(x)
    y.sum().backward()
    return x.grad


@program
def a_gradient_that_is_broadcast(lib):
    x = leaf(lib, 3.0)
    y = custom(lib, lambda ctx, x: x.expand(4).clone(), identity).apply(x)
    y.sum().backward()
    return x.grad


@program
def a_gradient_of_another_precision(lib):
    x = leaf(lib)
    y = custom(lib, doubled, lambda ctx, grad: grad.float()).apply(x)
    y.sum().backward()
    return x.grad, str(x.grad.dtype)[-7:]


@program
def once_differentiable(lib):
    decorate = lib.autograd.function.once_differentiable
    function = custom(lib, doubled, decorate(lambda ctx, grad: grad * 2))
    x = leaf(lib)
    y = function.apply(x)
    (first,) = lib.autograd.grad(y.sum(), x)
    y = function.apply(x)
    (second,) = lib.autograd.grad((y * y).sum(), x, create_graph=True)
    return first, second


@program
def once_differentiable_twice(lib):
    decorate = lib.autograd.function.once_differentiable
    x = leaf(lib)
    y = custom(lib, doubled, decorate(lambda ctx, grad: grad * 2)).apply(x)
    (first,) = lib.autograd.grad((y * y).sum(), x, create_graph=True)
    first.sum().backward()


@program
def the_node(lib):
    x = leaf(lib)
    node = custom(lib, doubled, identity).apply(x).grad_fn
    node.metadata["key"] = 3
    kinds = lib.autograd.graph.Node
    names = [one.name().rpartition("::")[2] for one, _ in node.next_functions]
    return (
        node.name(),
        type(node).__name__,
        isinstance(node, kinds),
        names,
        node.metadata,
        node.next_functions[0][0].variable is x,
    )


@program
def the_context(lib):
    seen = []

    def forward(ctx, x):
        seen.append(ctx)
        ctx.device, ctx.module, ctx.mine = "here", "a part", "mine"
        return x * 2

    def backward(ctx, grad):
        seen.append(ctx is seen[0])
        seen.append([ctx.device, ctx.module, ctx.mine, ctx.later])
        seen.append([ctx.name(), len(ctx.next_functions), ctx.metadata])
        return grad

    x = leaf(lib)
    y = custom(lib, forward, backward).apply(x)
    y.grad_fn.later = "set on the node"
    seen.append([y.grad_fn is seen[0], y.grad_fn.mine, type(y.grad_fn).__name__])
    seen.append(isinstance(y.grad_fn, lib.autograd.graph.Node))
    seen.append([len(one) for one in (y.grad_fn.apply(y), y.grad_fn.saved_tensors)])
    y.sum().backward()
    return seen[1:]


@program
def hooks_of_the_node(lib):
    log = []
    x = leaf(lib)
    y = custom(lib, doubled, lambda ctx, grad: grad * 2).apply(x)
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.grad_fn.register_hook(lambda returned, given: log.append([returned, given]))
    y.sum().backward()
    return x.grad, log


@program
def functions_in_functions(lib):
    inner = custom(lib, lambda ctx, x: x * 3, lambda ctx, grad: grad * 3)

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return inner.apply(x) * 2

    def backward(ctx, grad):
        return inner.apply(grad) * 2

    x = leaf(lib)
    y = custom(lib, forward, backward).apply(x)
    (first,) = lib.autograd.grad(
        y.sum(), x, lib.tensor(1.0).double(), create_graph=True
    )
    return y, first


@program
def a_backward_in_a_backward(lib):
    def forward(ctx, x):
        with lib.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = ctx.x**2
        return ctx.y.detach()

    def backward(ctx, grad):
        ctx.y.backward(grad)
        return ctx.x.grad

    x = leaf(lib)
    custom(lib, forward, backward).apply(x).sum().backward()
    return x.grad


@program
def nothing_saved_may_run_twice(lib):
    x = leaf(lib)
    y = custom(lib, doubled, identity).apply(x)
    y.backward(lib.ones(2).double())
    y.backward(lib.ones(2).double())
    return x.grad


@program
def a_straight_through_estimator(lib):
    x = leaf(lib, 0.3, 1.7)
    function = custom(lib, lambda ctx, x: x.round(), lambda ctx, grad: grad.clone())
    y = function.apply(x * 2)
    (y * y).sum().backward()
    return y, x.grad


@program
def gradient_reversal(lib):
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    def backward(ctx, grad):
        return grad.neg() * ctx.alpha, None

    x = leaf(lib)
    y = custom(lib, forward, backward).apply(x, 0.5)
    (y * 3).sum().backward()
    return y, x.grad


@program
def a_linear_layer_that_computes_only_what_is_needed(lib):
    log = []

    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight, bias)
        result = x.mm(weight.t())
        return result if bias is None else result + bias

    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        log.append(ctx.needs_input_grad)
        grads = [None, None, None]
        if ctx.needs_input_grad[0]:
            grads[0] = grad.mm(weight)
        if ctx.needs_input_grad[1]:
            grads[1] = grad.t().mm(x)
        if bias is not None and ctx.needs_input_grad[2]:
            grads[2] = grad.sum(0)
        return tuple(grads)

    function = custom(lib, forward, backward)
    x = lib.ones(3, 2, dtype=lib.float64)
    weight = lib.ones(4, 2, dtype=lib.float64, requires_grad=True)
    bias = lib.zeros(4, dtype=lib.float64, requires_grad=True)
    function.apply(x, weight, bias).sum().backward()
    function.apply(x, weight, None).sum().backward()
    return weight.grad, bias.grad, x.grad, log


@program
def a_list_of_tensors_as_one_argument_is_no_tensor(lib):
    function = custom(lib, lambda ctx, xs: xs[0] + xs[1], identity)
    return function.apply([leaf(lib), leaf(lib)])


@program
def several_tensors_unpacked(lib):
    def forward(ctx, *xs):
        ctx.count = len(xs)
        return sum(xs)

    xs = [leaf(lib) for _ in range(4)]
    function = custom(lib, forward, lambda ctx, grad: (grad,) * ctx.count)
    function.apply(*xs).sum().backward()
    return [x.grad for x in xs]


@program
def the_same_input_twice(lib):
    x = leaf(lib)
    function = custom(lib, lambda ctx, a, b: a * b, lambda ctx, grad: (grad, grad * 10))
    function.apply(x, x).sum().backward()
    return x.grad


@program
def one_after_another(lib):
    x = leaf(lib)
    function = custom(lib, doubled, lambda ctx, grad: grad * 2)
    y = function.apply(function.apply(function.apply(x)))
    return lib.autograd.grad(y.sum(), x), y.grad_fn.next_functions[0][0].name()


# --- mistakes -------------------------------------------------------------------------


def failing(lib: Any, forward: Any, backward: Any = identity, *args: Any) -> Any:
    y = custom(lib, forward, backward).apply(leaf(lib), *args)
    y.sum().backward()


@program
def too_many_gradients(lib):
    failing(lib, doubled, lambda ctx, grad: (grad, grad))


@program
def too_few_gradients(lib):
    failing(lib, lambda ctx, x, y: x * y, identity, leaf(lib))


@program
def a_gradient_that_is_a_number(lib):
    failing(lib, doubled, lambda ctx, grad: 1.0)


@program
def a_list_of_gradients(lib):
    failing(lib, doubled, lambda ctx, grad: [grad])


@program
def a_gradient_for_what_is_no_tensor(lib):
    failing(lib, lambda ctx, x, k: x * k, lambda ctx, grad: (grad, grad), 3)


@program
def a_gradient_of_another_shape(lib):
    failing(lib, doubled, lambda ctx, grad: lib.ones(3))


@program
def no_backward(lib):
    failing(lib, doubled, None)


@program
def no_forward(lib):
    failing(lib, None)


@program
def both_backward_and_vjp(lib):
    function = custom(lib, doubled, identity, vjp=identity)
    function.apply(leaf(lib)).sum().backward()


@program
def a_backward_that_raises(lib):
    failing(lib, doubled, lambda ctx, grad: 1 / 0)


@program
def a_forward_that_raises(lib):
    failing(lib, lambda ctx, x: 1 / 0)


@program
def saved_what_is_no_tensor(lib):
    failing(lib, lambda ctx, x: [ctx.save_for_backward(x, 3), x * 2][1])


@program
def freed(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    y = custom(lib, forward, lambda ctx, grad: grad * ctx.saved_tensors[0])
    y = y.apply(leaf(lib)).sum()
    y.backward()
    y.backward()


@program
def freed_and_looked_at(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    y = custom(lib, forward, identity).apply(leaf(lib))
    y.sum().backward()
    return y.grad_fn.saved_tensors


@program
def saved_and_changed(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]

    x = lib.ones(2) * leaf(lib).float()
    y = custom(lib, forward, backward).apply(x)
    x.add_(1)
    try:
        y.sum().backward()
    except RuntimeError as error:
        return str(error).partition(": [")[0], "at version 1; expected" in str(error)


@program
def a_leaf_changed_in_place(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    custom(lib, forward, identity).apply(leaf(lib))


@program
def changed_and_not_returned(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 2

    custom(lib, forward, identity).apply(leaf(lib).clone())


@program
def changed_but_no_input(lib):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    return custom(lib, forward, identity).apply(leaf(lib))


@program
def returned_and_saved_by_setup_context(lib):
    def setup(ctx, inputs, output):
        ctx.save_for_backward(output)

    custom(lib, lambda x: x, identity, setup_context=setup).apply(leaf(lib))


@program
def a_returned_view_changed_in_place(lib):
    y = custom(lib, lambda ctx, x: x.view(-1), identity).apply(leaf(lib))
    y.mul_(2)


@program
def one_of_several_returned_views_changed_in_place(lib):
    def forward(ctx, x):
        return x[:1], x[1:]

    y, _ = custom(lib, forward, lambda ctx, a, b: lib.cat([a, b])).apply(leaf(lib))
    y.mul_(2)


@program
def an_instance(lib):
    return type(custom(lib, doubled, identity)()).__name__


@program
def an_instance_that_is_called(lib):
    custom(lib, doubled, identity)()(leaf(lib))


def _four_outputs(lib, seen, **flags):
    """A function of which two outputs have no gradient; it notes what backward gets."""

    def forward(ctx, x):
        for name, value in flags.items():
            setattr(ctx, name, value)
        fixed = x * 2
        ctx.mark_non_differentiable(fixed)
        return x * 1, fixed, (x > 0).to(lib.int64), x * 3

    def backward(ctx, *grads):
        seen.append([None if one is None else one.tolist() for one in grads])
        return grads[0]

    return custom(lib, forward, backward)


@program
def zeros_only_for_outputs_that_have_a_gradient(lib):
    seen = []
    for flags in (
        {},
        {"_materialize_non_diff_grads": False},
        {"_materialize_non_diff_grads": True},
        {"_materialize_non_diff_grads": False, "materialize_grads": False},
        {"_materialize_non_diff_grads": True, "materialize_grads": False},
    ):
        _four_outputs(lib, seen, **flags).apply(leaf(lib))[0].sum().backward()
    return seen


@program
def what_the_flag_is_unless_it_is_set(lib):
    seen = []

    def forward(ctx, x):
        seen.append(ctx._materialize_non_diff_grads)
        return x * 1

    custom(lib, forward, identity).apply(leaf(lib))
    return seen


@program
def a_flag_that_is_no_bool(lib):
    _four_outputs(lib, [], _materialize_non_diff_grads=1).apply(leaf(lib))


@program
def another_flag_that_is_no_bool(lib):
    _four_outputs(lib, [], materialize_grads=None).apply(leaf(lib))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_custom_function_does_what_it_does_in_pytorch(name):
    same_in_both(PROGRAMS[name])
