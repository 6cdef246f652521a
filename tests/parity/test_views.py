"""Random programs of views and changes in place do the same here and in PyTorch (G17).

Each program is a list of steps, made from a seed. A step makes a tensor of earlier ones
or changes one; what it says if that is forbidden is part of what it does.
"""

import random
import re

import numpy as np
import pytest

import gradviz

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

VIEWS = {
    "select": lambda lib, x: x[0],
    "last": lambda lib, x: x[..., -1],
    "slice": lambda lib, x: x[1:],
    "strided": lambda lib, x: x[..., ::2],
    "all": lambda lib, x: x[...],
    "new": lambda lib, x: x[None],
    "flat": lambda lib, x: x.view(-1),
    "reshape": lambda lib, x: x.reshape(-1),
    "transpose": lambda lib, x: x.transpose(0, -1),
    "T": lambda lib, x: x.permute(tuple(reversed(range(x.dim())))),
    "unsqueeze": lambda lib, x: x.unsqueeze(-1),
    "squeeze": lambda lib, x: x.squeeze(),
    "diagonal": lambda lib, x: x.diagonal(),
    "expand": lambda lib, x: x.unsqueeze(0).expand(2, *x.shape),
    "narrow": lambda lib, x: x.narrow(0, 0, 1),
    "unbind": lambda lib, x: x.unbind(0)[0],
    "split": lambda lib, x: x.split(1)[-1],
    "chunk": lambda lib, x: x.chunk(2)[0],
    "detach": lambda lib, x: x.detach(),
    "data": lambda lib, x: x.data,
    "view_as": lambda lib, x: x.view_as(x),
}

OPS = {
    "sin": lambda lib, x, y: x.sin(),
    "exp": lambda lib, x, y: x.exp(),
    "clone": lambda lib, x, y: x.clone(),
    "square": lambda lib, x, y: x * x,
    "mul": lambda lib, x, y: x * y,
    "add": lambda lib, x, y: x + y,
    "relu": lambda lib, x, y: x.relu(),
}

CHANGES = {
    "add_": lambda lib, x, y: x.add_(1),
    "mul_": lambda lib, x, y: x.mul_(0.5),
    "add_y_": lambda lib, x, y: x.add_(y),
    "mul_y_": lambda lib, x, y: x.mul_(y),
    "sin_": lambda lib, x, y: x.sin_(),
    "sigmoid_": lambda lib, x, y: x.sigmoid_(),
    "zero_": lambda lib, x, y: x.zero_(),
    "fill_": lambda lib, x, y: x.fill_(0.25),
    "copy_": lambda lib, x, y: x.copy_(y),
    "set_first": lambda lib, x, y: x.__setitem__(0, 0.75),
    "set_some": lambda lib, x, y: x.__setitem__(slice(1, None), y),
    "set_mask": lambda lib, x, y: x.__setitem__(x > 0.5, 0.125),
    "detach_": lambda lib, x, y: x.detach_(),
    "requires_grad_": lambda lib, x, y: x.requires_grad_(),
}

SHAPES = ((2, 3), (3, 3), (3,), (2, 2, 2), ())


def program(seed):
    """Steps: what kind, which, on which tensors (as fractions), in which mode."""
    source = random.Random(seed)
    steps = [
        ("leaf", source.choice(SHAPES), source.random() < 0.6, "grad")
        for _ in range(source.randint(1, 3))
    ]
    for _ in range(source.randint(3, 10)):
        kind = source.choices(["view", "op", "change"], [4, 2, 4])[0]
        name = source.choice(list({"view": VIEWS, "op": OPS, "change": CHANGES}[kind]))
        mode = source.choices(["grad", "no_grad"], [5, 1])[0]
        steps.append((kind, name, (source.random(), source.random()), mode))
    return steps


def run(lib, steps, seed):
    """Return the effect of each step, and the gradients at the end."""
    numbers = np.random.default_rng(seed)
    tensors = []
    report = []
    for kind, name, choice, mode in steps:
        try:
            if kind == "leaf":
                x = lib.tensor(numbers.random(name))
                tensors.append(x.requires_grad_() if choice else x)
            else:
                x, y = (tensors[int(one * len(tensors))] for one in choice)
                if kind == "change" and x is not y and overlap(x, y):
                    y = y.detach().clone()  # PyTorch may do anything here
                with lib.no_grad() if mode == "no_grad" else lib.enable_grad():
                    if kind == "view":
                        tensors.append(VIEWS[name](lib, x))
                    elif kind == "op":
                        tensors.append(OPS[name](lib, x, y))
                    else:
                        CHANGES[name](lib, x, y)
        except (RuntimeError, IndexError) as error:
            report.append((kind, name, words(error)))
            if "view of its base has been" in str(error):
                return report  # this tensor raises forever, whatever it is asked
        report += [(kind, name, *described(tensors, one)) for one in tensors]
    report += ends(lib, tensors)
    return report


def overlap(x, y):
    """Return whether two tensors share memory."""
    return np.may_share_memory(x.detach().numpy(), y.detach().numpy())


def described(tensors, x):
    """Describe a tensor completely."""
    number = next((i for i, one in enumerate(tensors) if one is x._base), None)
    try:
        grad_fn = None if x.grad_fn is None else x.grad_fn.name().split("::")[-1]
        following = (
            None
            if x.grad_fn is None
            else [
                None if node is None else node.name().split("::")[-1]
                for node, _ in x.grad_fn.next_functions
            ]
        )
    except RuntimeError as error:
        grad_fn, following = words(error), None
    return (
        np.round(np.asarray(x.tolist()), 6).tolist(),
        grad_fn,
        following,
        x.requires_grad if following is not None or grad_fn is None else None,
        x._version,
        x._is_view(),
        number,
    )


def ends(lib, tensors):
    """The gradients of all leaves, or what is said instead."""
    report = []
    for x in tensors:
        try:
            if x.requires_grad:
                x.sum().backward(retain_graph=True)
        except RuntimeError as error:
            report.append(words(error))
    for x in tensors:
        try:
            if x.is_leaf:
                grad = x.grad
                report.append(
                    None if grad is None else np.round(grad.tolist(), 6).tolist()
                )
        except RuntimeError as error:
            report.append(words(error))
    return report


def words(error):
    """A message, whichever library it is of."""
    text = str(error).replace("torch.", "gradviz.").replace("torch::autograd::", "")
    text = re.sub(r"\[gradviz\.\w+ ", "[", text)
    return re.sub(r"expand\(.*?\{", "expand({", text)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", range(20))
def test_a_random_program_of_views_does_the_same(block):
    for seed in range(block * 20, block * 20 + 20):
        steps = program(seed)
        assert run(gradviz, steps, seed) == run(torch, steps, seed), (seed, steps)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", range(20, 25))
def test_a_random_program_of_views_that_remember_their_ops_does_the_same(block):
    for seed in range(block * 20, block * 20 + 20):
        steps = program(seed)
        with (
            gradviz.autograd._force_original_view_tracking(True),
            torch.autograd._force_original_view_tracking(True),
        ):
            assert run(gradviz, steps, seed) == run(torch, steps, seed), (seed, steps)


def views_made_with_and_without_tracking(lib):
    x = lib.ones(4, 4, requires_grad=True).clone()
    first = x.t()
    with lib.autograd._force_original_view_tracking(True):
        second = first[1:]
        with lib.autograd._force_original_view_tracking(False):
            third = second[:, 1:]
        fourth = third.unsqueeze(0)
    fifth = fourth.squeeze(0)
    return x, [first, second, third, fourth, fifth]


def test_a_view_of_views_has_the_nodes_of_those_that_were_tracked():
    def names(lib):
        x, views = views_made_with_and_without_tracking(lib)
        x.mul_(2)
        chains = []
        for view in views:
            node, chain = view.grad_fn, []
            while node is not None:
                chain.append(node.name().rpartition("::")[2])
                node = node.next_functions[0][0] if node.next_functions else None
            chains.append(chain)
        return chains

    assert names(gradviz) == names(torch)


def test_its_gradient_goes_back_through_all_of_them():
    def gradients(lib):
        x, views = views_made_with_and_without_tracking(lib)
        x.mul_(2)
        return [
            lib.autograd.grad(view.sum(), x, retain_graph=True)[0].tolist()
            for view in views
        ]

    assert gradients(gradviz) == gradients(torch)


def test_tracking_is_forced_for_a_block_a_function_or_from_a_call_on():
    def answers(lib):
        force, ask = (
            lib.autograd._force_original_view_tracking,
            lib.autograd.is_view_replay_enabled,
        )
        given = [ask(), force(True)(ask)(), ask()]
        with force(True):
            given.append(ask())
        force(True)
        given.append(ask())
        force(False)
        return [*given, ask()]

    expected = [False, True, False, True, True, False]
    assert answers(gradviz) == answers(torch) == expected
