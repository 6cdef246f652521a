"""Every command answers of traces that no engine writes, or says what it cannot."""

import pytest

import gradviz as gv
from tests.campaigns import IS_FULL
from tests.hostile.mutants import EVERY, complaint, mutant
from tests.hostile.traces import record_all

#: Of each mutant so many commands, by turns; with ``-m stress`` all of them.
FEW = 5


class Inner(gv.autograd.Function):
    """Calls for a backward inside of its own."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with gv.enable_grad():
            inner = x.detach().requires_grad_()
            (inner * inner).sum().backward()
        return grad * inner.grad


def record_nested(path):
    with gv.record(path, stacks="full"):
        for _ in range(2):
            x = gv.ones(3, requires_grad=True)
            (Inner.apply(Inner.apply(x)) + x.exp()).sum().backward(retain_graph=True)
            both = (x.to(f"sim:{number}").exp().to("cpu") for number in range(2))
            gv.autograd.grad(sum(both).sum(), [x])
    return path


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    made = record_all(folder / "all.gvt"), record_nested(folder / "nested.gvt")
    return [one.read_bytes() for one in made]


def complaints(originals, seed, commands, folder):
    path = folder / "x.gvt"
    path.write_bytes(mutant(originals[seed % len(originals)], seed))
    return [said for one in commands if (said := complaint(one, path))]


@pytest.mark.parametrize("seed", range(12))
def test_some_commands_answer(seed, originals, tmp_path):
    some = [EVERY[(seed * FEW + one) % len(EVERY)] for one in range(FEW)]

    assert complaints(originals, seed, some, tmp_path) == []


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(100, 300 if IS_FULL else 140))
def test_all_commands_answer(seed, originals, tmp_path):
    assert complaints(originals, seed, EVERY, tmp_path) == []
