"""Checks of our engine while it is recorded: `gv.record(check_finite=True)`."""

import numpy as np
import pytest

import gradviz as gv
from gradviz.engine.graph.anomaly import GRADIENT_CHECKS
from gradviz.ops.dispatch.creation_hooks import CREATION_HOOKS_IN_USE
from gradviz.program_hooks import after_step
from gradviz.trace.events import NotFinite
from gradviz.trace.probe import Checked


def found_in(program, *, check_finite=True):
    """Return the findings of a program that is checked: kind, NaN or not, name."""
    with gv.record(check_finite=check_finite) as recording:
        program()
    return [one for one in recording.events() if isinstance(one, NotFinite)]


def kinds_in(program):
    return [(one.what, one.is_nan, one.name) for one in found_in(program)]


def leaf(*numbers, dtype="float32"):
    return gv.tensor(np.array(numbers, dtype), requires_grad=True)


def test_nothing_is_found_where_all_is_finite():
    assert found_in(lambda: leaf(1.0, 2.0).exp().sum().backward()) == []


@pytest.mark.parametrize("device", ["cpu", "sim:0"])
def test_the_op_that_makes_an_infinity_is_found_then_the_node(device):
    x = gv.tensor([1.0, 0.0], device=device, requires_grad=True)

    result, gradient = [
        one
        for one in found_in(lambda: (x * 4).log().sum().backward())
        if one.what is not Checked.LOSS
    ]

    assert (result.what, result.is_nan, result.name) == (
        Checked.RESULT,
        False,
        "LogBackward0",
    )
    assert (result.smallest, result.largest, result.task) == ("4.0", "4.0", -1)
    assert (gradient.what, gradient.name) == (Checked.GRADIENT, "LogBackward0")
    assert gradient.node == result.node
    assert gradient.task >= 0


def test_a_gradient_can_be_infinite_where_all_values_are_finite():
    assert kinds_in(lambda: leaf(4.0, 0.0).sqrt().sum().backward()) == [
        (Checked.GRADIENT, False, "SqrtBackward0")
    ]


def test_checks_find_an_infinity_and_a_nan_in_a_double_backward():
    x = leaf(0.0, 0.0)

    def program():
        (grad,) = gv.autograd.grad((x * x).sum(), [x], create_graph=True)
        (grad * grad).sum().sqrt().backward()

    first, second = found_in(program)

    assert (first.name, first.is_nan) == ("SqrtBackward0", False)
    assert second.is_nan
    assert first.task == second.task


def test_masks_of_infinities_are_meant_and_a_row_of_nothing_else_is_not():
    scores = leaf(*range(4)).reshape(2, 2)
    mask = gv.tensor([[False, True], [False, False]])
    closed = gv.tensor([[True, True], [False, False]])

    def attention(mask):
        filled = (scores * 1).masked_fill(mask, float("-inf"))
        filled.softmax(1).sum().backward()

    assert found_in(lambda: attention(mask)) == []
    first = found_in(lambda: attention(closed))[0]
    assert (first.name, first.is_nan, first.given_infinity) == (
        "SoftmaxBackward0",
        True,
        True,
    )


def test_an_added_mask_of_infinities_is_meant_too():
    x, mask = leaf(1.0, 2.0), gv.tensor([0.0, -np.inf])

    def program():
        (x + mask).softmax(0)[0].backward()

    assert found_in(program) == []


def test_a_sum_of_finite_gradients_may_overflow():
    x = leaf(1.0, dtype="float16")

    def program():
        y = x * 1
        gradients = [gv.tensor(np.array([40_000.0], "float16"))] * 2
        gv.autograd.backward([y * 1, y * 1], gradients)

    (one,) = found_in(program)

    assert (one.what, one.name, one.is_nan) == (Checked.SUM, "MulBackward0", False)


def test_a_nan_that_the_caller_gives_is_told_of_the_root():
    x = leaf(1.0, 2.0)

    (one,) = found_in(lambda: (x * 2).backward(gv.tensor([1.0, np.nan])))

    assert (one.what, one.name, one.is_nan) == (Checked.SUM, "MulBackward0", True)


def test_each_forward_and_each_pass_tells_its_first_only():
    def step():
        x = leaf(1.0, 0.0)
        (x.log() + x.log() + x.log()).exp().sum().backward()

    def program():
        step()
        step()

    found = found_in(program)

    names = [one.name for one in found if one.what is Checked.RESULT]
    assert names == ["LogBackward0", "LogBackward0"]


def test_a_parameter_that_an_optimizer_made_infinite_is_told_once():
    x = leaf(1.0)
    optimizer = gv.optim.SGD([x], lr=float("inf"))

    def program():
        for _ in range(3):
            optimizer.zero_grad()
            (x * 2).sum().backward()
            optimizer.step()

    found = [one for one in found_in(program) if one.what is Checked.PARAMETER]

    assert [one.is_nan for one in found] == [False]


@pytest.mark.parametrize(("value", "is_nan"), [(np.inf, False), (np.nan, True)])
def test_without_the_option_the_loss_is_known(value, is_nan):
    x = leaf(value)

    (one,) = found_in(lambda: (x * 2).sum().backward(), check_finite=False)

    assert (one.what, one.is_nan) == (Checked.LOSS, is_nan)
    assert one.node >= 0


def test_the_checks_leave_nothing_behind():
    before = len(CREATION_HOOKS_IN_USE), len(after_step)

    with gv.record(check_finite=True), gv.record(check_finite=True):
        leaf(1.0).exp().sum().backward()

    assert GRADIENT_CHECKS == []
    assert (len(CREATION_HOOKS_IN_USE), len(after_step)) == before


def test_recordings_that_overlap_hear_of_each_value_once():
    with gv.record(check_finite=True) as outer:
        with gv.record(check_finite=True) as inner:
            leaf(4.0, 0.0).sqrt().sum().backward()
        leaf(4.0, 0.0).sqrt().sum().backward()

    counts = [
        sum(isinstance(one, NotFinite) for one in recording.events())
        for recording in (outer, inner)
    ]
    assert counts == [2, 1]


def test_gradients_are_those_of_a_program_that_is_not_checked():
    def gradients():
        gv.manual_seed(3)
        x = gv.randn(4, 4, requires_grad=True)
        gv.nn.functional.dropout(x @ x, 0.5).tanh().sum().backward()
        return x.grad.numpy(), gv.rand(2).numpy()

    expected = gradients()
    with gv.record(check_finite=True):
        found = gradients()

    for one, other in zip(found, expected, strict=True):
        assert (one == other).all()


def test_the_trace_says_that_it_was_checked():
    with gv.record(check_finite=True) as checked:
        pass
    with gv.record() as unchecked:
        pass

    assert checked.trace.header.scope.checks_finite
    assert not unchecked.trace.header.scope.checks_finite
