"""A program: ops and backwards on tensors, each struck a little later (F04).

Run as ``python -m tests.faults.surroundings FIRST STEP``; prints a `Report`. An
interrupt may end an op or a pass anywhere. What surrounds them must be as it was:
NumPy's error handling, and every context variable.
"""

import contextvars
import faulthandler
import json
import signal
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import gradviz as gv
from tests.faults.programs import HANG_SECONDS
from tests.faults.strikes import Report
from tests.faults.striking import Strike, interrupting


def ops() -> None:
    """Each kind of door, forward only."""
    x = gv.ones(2, requires_grad=True)
    y = (x * 2).sin() + x.reshape(2, 1).sum(1)
    y += gv.where(y > 0, y, x)
    gv.isclose(x.max(0).values, y)
    gv.zeros(2).log_()


class Squared(gv.autograd.Function):
    """A custom function; its forward runs with gradient mode off."""

    @staticmethod
    def forward(ctx: Any, x: gv.Tensor) -> gv.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: gv.Tensor) -> gv.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def functions() -> None:
    """Run functions that switch gradient mode by themselves."""
    x = gv.ones(2, requires_grad=True)
    y = Squared.apply(x)
    gv.add(y.detach(), 1, out=gv.zeros(2))
    view, y = y[:1], y.mul_(2)
    assert view.grad_fn is not None
    y.register_hook(lambda grad: grad * 2)
    y.sum().backward()


def inference_blocks() -> None:
    """Blocks that hold a reference to nothing but what is to be put back."""
    with gv.inference_mode(), gv.inference_mode(mode=False):
        gv.ones(2)
    with gv.inference_mode():
        gv.ones(2)


def passes() -> None:
    """A backward, one with a graph of its own, and one inside another."""
    x = gv.ones(2, requires_grad=True)
    (slope,) = gv.autograd.grad((x * x).sum(), [x], create_graph=True)
    inner = (x * 2).sum()
    slope.register_hook(lambda grad: inner.backward())
    slope.sum().backward()


Surroundings = tuple[dict[str, str], dict[contextvars.ContextVar[Any], Any]]


def surroundings() -> Surroundings:
    """Return the state that must not change: NumPy's errors, context variables."""
    return np.geterr(), dict(contextvars.copy_context())


def check(before: Surroundings) -> None:
    errors, variables = surroundings()
    assert errors == before[0], f"NumPy's error handling was not put back: {errors}"
    changed = [
        variable.name
        for variable, value in variables.items()
        if value is not before[1].get(variable)
    ]
    assert not changed, f"context variables were not put back: {changed}"


def strike(work: Callable[[], None], first: int, step: int, report: Report) -> None:
    """Interrupt `work` at each of these bytecodes, until one comes after its end."""
    work()  # what is made once, at the first use, is made by now
    before = surroundings()
    for nth in range(first, sys.maxsize, step):
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        blow = Strike(nth, interrupting)
        try:
            try:
                blow.arm()
                work()
            finally:
                blow.disarm()
        except KeyboardInterrupt:
            report.num_raised += 1
        if not blow.place:
            return
        report.num_strikes += 1
        report.check(nth, blow, check, before)


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    report = Report()
    first, step = map(int, sys.argv[1:])
    for work in (ops, functions, inference_blocks, passes):
        strike(work, first, step, report)
    json.dump(vars(report), sys.stdout)


if __name__ == "__main__":
    main()
