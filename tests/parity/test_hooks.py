"""Hooks do what they do in PyTorch: order, replacement, removal, mistakes."""

import functools
import gc
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


def leaf(lib: Any, *numbers: float) -> Any:
    numbers = numbers or (1.0, 2.0)
    return lib.tensor(numbers, dtype=lib.float64, requires_grad=True)


# --- tensors --------------------------------------------------------------------------


@program
def hooks_of_a_tensor_run_in_order_and_see_what_the_others_made(lib):
    seen = []
    x = leaf(lib)
    y = x * 2
    for factor in (2, 3):
        y.register_hook(lambda grad, f=factor: grad * f)
        y.register_hook(lambda grad: seen.append(grad.tolist()))
    y.sum().backward()
    return seen, x.grad


@program
def a_hook_on_a_leaf(lib):
    x = leaf(lib)
    handle = x.register_hook(lambda grad: grad * 10)
    (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    return x.grad


@program
def a_hook_removes_itself_and_others_while_it_runs(lib):
    seen, handles = [], []
    x = leaf(lib)
    y = x * 2

    def hook(name, grad):
        seen.append(name)
        for handle in handles:
            handle.remove()

    handles.extend(y.register_hook(functools.partial(hook, name)) for name in "abc")
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return seen


@program
def a_hook_registers_another_while_it_runs(lib):
    seen = []
    x = leaf(lib)
    y = x * 2

    def hook(grad):
        seen.append("first")
        y.register_hook(lambda grad: seen.append("second"))

    y.register_hook(hook)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return seen


@program
def a_handle_as_a_block(lib):
    x = leaf(lib)
    with x.register_hook(lambda grad: grad * 10):
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    return x.grad


@program
def removing_twice(lib):
    x = leaf(lib)
    handle = x.register_hook(lambda grad: grad * 10)
    handle.remove()
    handle.remove()
    (x * 2).sum().backward()
    return x.grad


@program
def a_handle_keeps_no_graph_alive(lib):
    x = leaf(lib)
    y = x * 2
    handle = y.register_hook(lambda grad: None)
    other = y.grad_fn.register_hook(lambda a, b: None)
    gone = weakref.ref(y)
    del y
    gc.collect()
    handle.remove()
    other.remove()
    return gone() is None


@program
def hooks_with_create_graph_are_differentiated(lib):
    x = leaf(lib)
    y = x**3
    y.register_hook(lambda grad: grad * x)
    (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    return first, lib.autograd.grad(first.sum(), x)


@program
def a_retained_gradient_is_what_the_hooks_left(lib):
    x = leaf(lib)
    y = x * 2
    y.register_hook(lambda grad: grad * 2)
    y.retain_grad()
    y.register_hook(lambda grad: grad * 3)
    y.sum().backward()
    return y.grad, x.grad, y.retains_grad


@program
def hooks_on_two_outputs_of_one_op(lib):
    seen = []
    x = leaf(lib)
    first, second = x.unbind()
    second.register_hook(lambda grad: seen.append(("second", grad.tolist())))
    first.register_hook(lambda grad: seen.append(("first", grad.tolist())))
    second.register_hook(lambda grad: seen.append(("second again", grad.tolist())))
    (first * 2 + second * 3).backward()
    return seen


@program
def a_hook_in_a_hook_runs_a_backward(lib):
    x, z = leaf(lib), leaf(lib)

    def hook(grad):
        with lib.enable_grad():
            (z * z).sum().backward()
        return grad * z.grad

    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    return x.grad, z.grad


@program
def hooks_before_and_after_a_change_in_place(lib):
    seen = []
    x = leaf(lib)
    y = x * 2
    y.register_hook(lambda grad: seen.append(("before", grad.tolist())))
    y.retain_grad()
    y.mul_(3)
    y.register_hook(lambda grad: seen.append(("after", grad.tolist())))
    y.sum().backward()
    return seen, y.grad, x.grad


@program
def a_hook_sees_undefined_gradients_never(lib):
    seen = []
    x = leaf(lib)
    first, second = x.unbind()
    second.register_hook(seen.append)
    first.backward()
    return seen, x.grad


# --- leaves after accumulation --------------------------------------------------------


@program
def after_accumulation(lib):
    seen = []
    x = leaf(lib)

    def step(leaf):
        seen.append([leaf is x, leaf.grad.tolist(), lib.is_grad_enabled()])
        leaf.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    handle.remove()
    (x * 4).sum().backward()
    return seen, x.grad


@program
def after_accumulation_and_with_tensor_hooks(lib):
    seen = []
    x = leaf(lib)
    x.register_post_accumulate_grad_hook(lambda one: seen.append(one.grad.tolist()))
    x.register_hook(lambda grad: grad * 10)
    x.register_post_accumulate_grad_hook(lambda one: seen.append("again"))
    (x * x).sum().backward()
    return seen


@program
def one_function_registered_twice(lib):
    seen = []
    x = leaf(lib)

    def hook(one):
        seen.append(one.grad.tolist())

    handles = [x.register_post_accumulate_grad_hook(hook) for _ in range(2)]
    handles[0].remove()
    (x * 2).sum().backward()
    return seen


@program
def after_accumulation_of_other_than_a_leaf(lib):
    (leaf(lib) * 2).register_post_accumulate_grad_hook(print)


@program
def after_accumulation_without_gradient(lib):
    lib.ones(2).register_post_accumulate_grad_hook(print)


@program
def after_accumulation_returning_something(lib):
    x = leaf(lib)
    x.register_post_accumulate_grad_hook(lambda one: one.detach())
    (x * 2).sum().backward()


@program
def after_accumulation_raising(lib):
    x = leaf(lib)
    x.register_post_accumulate_grad_hook(lambda one: 1 / 0)
    (x * 2).sum().backward()


# --- nodes ----------------------------------------------------------------------------


@program
def hooks_of_a_node(lib):
    seen = []
    x = leaf(lib)
    y = x * 3
    y.grad_fn.register_prehook(lambda grads: seen.append(["pre", *grads]))
    y.grad_fn.register_hook(lambda r, g: seen.append(["post", *r, *g]))
    y.sum().backward()
    return seen


@program
def hooks_of_a_node_that_replace(lib):
    x = leaf(lib)
    y = x * 3
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(lambda r, g: (r[0] + g[0], None))
    y.sum().backward()
    return x.grad


@program
def a_prehook_that_takes_the_gradient_away(lib):
    x = leaf(lib)
    y = x * 3
    y.grad_fn.register_prehook(lambda grads: (None,))
    y.sum().backward()
    return x.grad


@program
def hooks_of_a_node_are_removed(lib):
    x = leaf(lib)
    y = x * 3
    before = y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    after = y.grad_fn.register_hook(lambda r, g: (r[0] * 5, None))
    y.sum().backward(retain_graph=True)
    before.remove()
    y.sum().backward(retain_graph=True)
    after.remove()
    y.sum().backward()
    return x.grad


@program
def hooks_of_an_accumulating_node(lib):
    seen = []
    x = leaf(lib)
    node = lib.autograd.graph.get_gradient_edge(x).node
    node.register_prehook(lambda grads: (grads[0] * 7,))
    node.register_hook(lambda r, g: seen.append([list(r), list(g)]))
    (x * 3).sum().backward()
    return seen, x.grad


@program
def a_prehook_that_returns_no_tuple(lib):
    y = leaf(lib) * 3
    y.grad_fn.register_prehook(lambda grads: grads[0])
    y.sum().backward()


@program
def a_prehook_that_returns_a_word(lib):
    y = leaf(lib) * 3
    y.grad_fn.register_prehook(lambda grads: ("word",))
    y.sum().backward()


@program
def a_hook_that_returns_too_few(lib):
    y = leaf(lib) * 3
    y.grad_fn.register_hook(lambda r, g: ())
    y.sum().backward()


@program
def a_hook_that_returns_a_list(lib):
    y = leaf(lib) * 3
    y.grad_fn.register_hook(lambda r, g: list(r))
    y.sum().backward()


@program
def a_hook_that_defines_what_is_undefined(lib):
    y = leaf(lib) * 3
    y.grad_fn.register_hook(lambda r, g: (r[0], r[0]))
    y.sum().backward()


@program
def a_hook_without_a_name(lib):
    y = leaf(lib) * 3
    y.register_hook(functools.partial(lambda factor, grad: grad.sum(), 3))
    y.sum().backward()


@program
def hooks_of_a_leaf_through_an_expanded_alias(lib):
    """Find the node that accumulates, like data-parallel trainers do."""
    seen = []
    x = leaf(lib)
    alias = x.expand_as(x)
    node = alias.grad_fn.next_functions[0][0]
    node.register_hook(lambda *_: seen.append(x.grad.tolist()))
    (x * 2).sum().backward()
    return seen, node.name().rpartition("::")[2], node.variable is x


@program
def a_callback_at_the_end_of_the_pass(lib):
    seen = []
    x = leaf(lib)
    engine = lib.autograd.Variable._execution_engine

    def hook(grad):
        engine.queue_callback(lambda: seen.append(x.grad.tolist()))

    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    return seen


@program
def walking_the_graph(lib):
    x, y = leaf(lib), leaf(lib)
    names = []

    def walk(node):
        if node is not None:
            names.append(node.name().rpartition("::")[2])
            for child, _ in node.next_functions:
                walk(child)

    walk(((x * y).sin() + 2 * x.detach()).sum().grad_fn)
    return names


@program
def gradients_clipped_by_hooks(lib):
    x = leaf(lib, 1.0, 100.0)
    x.register_hook(lambda grad: grad.clamp(-10, 10))
    (x**2).sum().backward()
    return x.grad


@program
def a_gradient_changed_in_place_by_a_hook(lib):
    x = leaf(lib)
    y = x * 3
    y.register_hook(lambda grad: grad.clone().mul_(2))
    y.sum().backward()
    return x.grad


# --- several tensors ------------------------------------------------------------------


@program
def one_hook_for_all(lib):
    seen = []
    a, b = leaf(lib), leaf(lib)
    c, d = a * b, a * b
    handle = lib.autograd.graph.register_multi_grad_hook((a, b, c, d), seen.append)
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c * d).sum().backward(retain_graph=True)
    handle.remove()
    c.sum().backward()
    return seen


@program
def one_hook_for_any(lib):
    seen = []
    a, b = leaf(lib), leaf(lib)
    c = a * b
    hook = lib.autograd.graph.register_multi_grad_hook
    hook((a, lib.ones(2), c), seen.append, mode="any")
    c.sum().backward(retain_graph=True)
    c.sum().backward()
    return seen


@program
def one_hook_for_all_in_another_mode(lib):
    lib.autograd.graph.register_multi_grad_hook((leaf(lib),), print, mode="some")


@program
def one_hook_for_all_under_grad_of_a_leaf(lib):
    a, b = leaf(lib), leaf(lib)
    c = a * b
    lib.autograd.graph.register_multi_grad_hook((a, c), print)
    lib.autograd.grad(c.sum(), a)


@program
def one_hook_in_a_backward_in_a_backward(lib):
    seen = []
    a, b = leaf(lib), leaf(lib)
    c = a * b
    lib.autograd.graph.register_multi_grad_hook((a, b), lambda g: seen.append(list(g)))

    def hook(grad):
        if not seen:
            with lib.enable_grad():
                (a * 2 + b * 3).sum().backward()

    c.register_hook(hook)
    c.sum().backward()
    return seen, a.grad


# --- edges ----------------------------------------------------------------------------


@program
def an_edge_in_place_of_a_tensor(lib):
    x = leaf(lib)
    y = x * 2
    edge = lib.autograd.graph.get_gradient_edge
    root, middle, end = edge(y.sum()), edge(y), edge(x)
    results = lib.autograd.grad(root, [middle, end], retain_graph=True)
    lib.autograd.backward(root, inputs=end)
    return results, x.grad, middle.output_nr, middle[1], middle.node.name()


@program
def an_edge_with_a_gradient(lib):
    x = leaf(lib)
    edge = lib.autograd.graph.get_gradient_edge(x * 2)
    return lib.autograd.grad(edge, x, lib.ones(2).double())


@program
def an_edge_that_is_no_scalar(lib):
    x = leaf(lib)
    lib.autograd.backward(lib.autograd.graph.get_gradient_edge(x * 2))


@program
def an_edge_and_a_gradient_of_another_shape(lib):
    x = leaf(lib)
    edge = lib.autograd.graph.get_gradient_edge(x * 2)
    lib.autograd.backward(edge, lib.ones(3).double())


@program
def an_edge_that_cannot_be_materialized(lib):
    x = leaf(lib)
    edge = lib.autograd.graph.get_gradient_edge(leaf(lib) * 2)
    lib.autograd.grad((x * 2).sum(), edge, materialize_grads=True)


@program
def an_edge_of_what_needs_no_gradient(lib):
    lib.autograd.graph.get_gradient_edge(lib.ones(2))


# --- arguments of grad and backward ---------------------------------------------------


@program
def a_dictionary_of_inputs(lib):
    x, y = leaf(lib), leaf(lib)
    results = lib.autograd.grad((x * y).sum(), {"x": x, 3: y})
    lib.autograd.backward((x * y).sum(), inputs={"x": x})
    return results, x.grad, y.grad


@program
def a_dictionary_with_what_is_unused(lib):
    x, y = leaf(lib), leaf(lib)
    results = [
        lib.autograd.grad((x * 2).sum(), {"x": x, "y": y}, allow_unused=True),
        lib.autograd.grad((x * 2).sum(), {"x": x, "y": y}, materialize_grads=True),
    ]
    lib.autograd.grad((x * 2).sum(), {"x": x, "y": y})
    return results


@program
def an_empty_dictionary(lib):
    lib.autograd.grad(leaf(lib).sum(), {})


@program
def another_mapping(lib):
    import collections

    lib.autograd.grad(leaf(lib).sum(), collections.OrderedDict(x=leaf(lib)))


@program
def another_mapping_for_backward(lib):
    import types

    x = leaf(lib)
    lib.autograd.backward(x.sum(), inputs=types.MappingProxyType({"x": x}))


@program
def inputs_that_are_no_tensors(lib):
    lib.autograd.grad(leaf(lib).sum(), [3])


@program
def inputs_that_are_no_tensors_for_backward(lib):
    leaf(lib).sum().backward(inputs=[3])


@program
def no_roots(lib):
    return lib.autograd.backward([])


@program
def zeros_that_may_be_differentiated(lib):
    x, y = leaf(lib), leaf(lib)
    total = (x * x).sum()
    options = {"materialize_grads": True, "create_graph": True}
    return lib.autograd.grad(total, [x, y], **options)


@program
def the_old_name_of_grad_tensors(lib):
    x = leaf(lib)
    lib.autograd.backward(x * 2, grad_variables=lib.ones(2).double())
    return x.grad


@program
def both_names_of_grad_tensors(lib):
    x, ones = leaf(lib), lib.ones(2).double()
    lib.autograd.backward(x * 2, ones, grad_variables=ones)


@program
def a_complex_gradient_of_what_is_real(lib):
    x = leaf(lib)
    lib.autograd.backward(x * 2, lib.ones(2, dtype=lib.complex128))


@program
def a_gradient_for_one_of_two(lib):
    x = leaf(lib)
    lib.autograd.backward([x.sum(), x * 3], [None, lib.ones(2).double()])
    return x.grad


@program
def changed_by_other_means(lib):
    x = leaf(lib)
    y = x.clone()
    z = y * y
    lib.autograd.graph.increment_version([y])
    version = y._version
    try:
        z.sum().backward()
    except RuntimeError as error:
        return version, str(error).partition(": [")[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_hooks_and_edges_do_what_they_do_in_pytorch(name):
    same_in_both(PROGRAMS[name])
