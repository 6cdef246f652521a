"""Errors in PyTorch's words: the same type, the same text.

Not here is where PyTorch's own words are at fault: it compares tensors while it looks
for the one of the wrong shape, ignores gradients beyond the last output, and has three
spellings for tensors of integers that are to require gradients.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest

import gradviz as gv
from gradviz.ops.variables.variable import raw
from tests.parity.worlds import GRADVIZ, TORCH, World

pytestmark = pytest.mark.parity


def leaf(world: World) -> Any:
    return world.tensor([1.0, 2.0], requires_grad=True)


def failing(world: World, returned: Any, dtype: str = "float64") -> None:
    """A backward through a node that returns what does not fit."""
    (output,) = world.step(lambda _: (world.array(returned, dtype),), 1, [leaf(world)])
    world.lib.autograd.backward(output, world.tensor([1.0, 1.0]))


def hooked(world: World, hook: Callable[[Any], Any]) -> None:
    a = leaf(world)
    a.clone().register_hook(hook)
    b = a.clone()
    b.register_hook(hook)
    b.sum().backward()


def node_hooked(world: World, *, before: Any = None, after: Any = None) -> None:
    a = leaf(world)
    b = a.clone()
    if before:
        world.before(world.node(b), before)
    if after:
        world.after(world.node(b), after)
    b.sum().backward()


def undefined(world: World, hook: Callable[[Any], Any]) -> None:
    """A hook is given no gradient."""
    a = leaf(world)
    a.register_hook(hook)
    (output,) = world.step(lambda _: (None,), 1, [a])
    world.lib.autograd.backward(output, world.tensor([1.0, 1.0]))


def twice(world: World) -> None:
    a = leaf(world)
    total = (a * a).sum()
    total.backward()
    total.backward()


def accumulated(world: World, hook: Callable[[Any], Any]) -> None:
    a = leaf(world)
    world.after_accumulation(a, hook)
    a.sum().backward()


#: What is done wrong.
MISTAKES: dict[str, Callable[[World], Any]] = {
    # arguments
    "no graph": lambda w: w.tensor(1.0).backward(),
    "one of two without a graph": lambda w: w.lib.autograd.backward(
        [leaf(w).sum(), w.tensor(1.0)]
    ),
    "no graph and not a scalar": lambda w: w.tensor([1.0, 2.0]).backward(),
    "not a scalar": lambda w: leaf(w).backward(),
    "not a scalar, for grad": lambda w: w.lib.autograd.grad((a := leaf(w)) * 2, a),
    "first gradient of another shape": lambda w: leaf(w).backward(w.tensor([1.0])),
    "first gradient of a scalar": lambda w: leaf(w).sum().backward(w.tensor([1.0])),
    "first gradient no tensor": lambda w: leaf(w).backward("one"),
    "first gradient a number": lambda w: leaf(w).sum().backward(2.0),
    "too few gradients": lambda w: w.lib.autograd.backward(
        [leaf(w).sum(), leaf(w).sum()], [None]
    ),
    "no inputs": lambda w: w.lib.autograd.backward(leaf(w).sum(), inputs=[]),
    "no inputs, for grad": lambda w: w.lib.autograd.grad(leaf(w).sum(), []),
    "an input without gradient": lambda w: w.lib.autograd.backward(
        leaf(w).sum(), inputs=w.tensor(1.0)
    ),
    "an input without gradient, for grad": lambda w: w.lib.autograd.grad(
        leaf(w).sum(), w.tensor(1.0)
    ),
    "an unused input": lambda w: w.lib.autograd.grad(leaf(w).sum(), leaf(w)),
    "an unused second input": lambda w: w.lib.autograd.grad(
        (a := leaf(w)).sum(), [a, leaf(w)]
    ),
    "an unused input, forbidden": lambda w: w.lib.autograd.grad(
        leaf(w).sum(), leaf(w), allow_unused=False, materialize_grads=True
    ),
    "complex output": lambda w: w.lib.tensor(1j, requires_grad=True).backward(),
    # graphs
    "through a graph twice": twice,
    "gradients of integers": lambda w: setattr(
        w.lib.tensor([1, 2]), "requires_grad", True
    ),
    "requires_grad of a result": lambda w: setattr(leaf(w) * 2, "requires_grad", False),
    "a leaf changed in place": lambda w: leaf(w).add_(1.0),
    "numpy of what needs gradients": lambda w: leaf(w).numpy(),
    "retain_grad without gradient": lambda w: w.tensor(1.0).retain_grad(),
    "a hook without gradient": lambda w: w.tensor(1.0).register_hook(print),
    "a callback outside": lambda w: w.queue_callback(print),
    # what nodes return
    "a gradient of another shape": lambda w: failing(w, [1.0, 2.0, 3.0]),
    "a gradient of no such shape": lambda w: failing(w, [[1.0], [2.0]]),
    "a complex gradient": lambda w: failing(w, [1.0, 2.0], "complex128"),
    "a .grad of another shape": lambda w: setattr(leaf(w), "grad", w.tensor([1.0])),
    "a .grad of another type": lambda w: setattr(leaf(w), "grad", 1.0),
    # what hooks return
    "a hook that returns a word": lambda w: hooked(w, lambda _: "word"),
    "a hook that changes the shape": lambda w: hooked(w, lambda grad: grad.sum()),
    "a hook that changes the type": lambda w: hooked(
        w, lambda _: w.array([1.0, 1.0], "float32")
    ),
    "a hook that replaces nothing": lambda w: undefined(
        w, lambda _: w.tensor([1.0, 1.0])
    ),
    "a hook that fails": lambda w: hooked(w, lambda _: 1 / 0),
    "a hook after a node that returns too much": lambda w: node_hooked(
        w, after=lambda returned, given: (*returned, None)
    ),
    "a hook before a node that returns too little": lambda w: node_hooked(
        w, before=lambda given: ()
    ),
    "a hook after accumulation that returns something": lambda w: accumulated(
        w, lambda x: x.detach()
    ),
}


def complaint(mistake: Callable[[World], Any], world: World) -> tuple[type, str]:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is the question
        mistake(world)
    return caught.type, spelled_alike(str(caught.value))


def spelled_alike(message: str) -> str:
    """`message` without what PyTorch's and NumPy's own types are called."""
    message = re.sub(r"(?:torch|gradviz)\.Size\((\[.*?\])\)", r"\1", message)
    return re.sub(r" \(was .* got .*\)", "", message.replace("torch.", ""))


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_called_what_pytorch_calls_it(name):
    assert complaint(MISTAKES[name], GRADVIZ) == complaint(MISTAKES[name], TORCH)


def test_a_gradient_on_another_device_is_refused_in_the_same_words():
    """V7."""
    elsewhere = {
        "meta": (TORCH, lambda: TORCH.lib.ones(2, device="meta")),
        "sim:0": (GRADVIZ, lambda: raw(gv.ones(2, device="sim:0"))),
    }
    for device, (world, gradient) in elsewhere.items():
        (output,) = world.step(lambda _, g=gradient: (g(),), 1, [leaf(world)])
        with pytest.raises(RuntimeError) as caught:
            world.lib.autograd.backward(output, world.tensor([1.0, 1.0]))
        assert str(caught.value) == (
            f"Function _StepBackward returned an invalid gradient at index 0 - "
            f"expected device cpu but got {device}"
        )
