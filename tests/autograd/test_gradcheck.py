import numpy as np
import pytest

import gradviz as gv
from gradviz.autograd import GradcheckError, gradcheck, gradgradcheck
from gradviz.ops.dispatch.differentiable import binary, unary
from gradviz.ops.variables.variable import raw


def leaf(*shape):
    values = np.random.default_rng(1).uniform(0.5, 1.5, shape)
    return gv.tensor(np.asarray(values), requires_grad=True)


def test_a_right_formula_passes():
    assert gradcheck(lambda x, y: (x * y).sin().sum(), [leaf(2, 3), leaf(3)])


def test_a_wrong_factor_is_found():
    wrong = unary("WrongBackward0", np.sin, lambda grad, x: grad * gv.cos(x) * 1.01)

    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0"):
        gradcheck(wrong, [leaf(4)])


def test_gradients_that_changed_places_are_found():
    swapped = binary(
        "SwappedBackward0",
        np.multiply,
        x=lambda grad, x: grad * x,
        y=lambda grad, y: grad * y,
    )

    with pytest.raises(GradcheckError):
        gradcheck(swapped, [leaf(4), leaf(4) * 2])


def test_a_missing_gradient_is_found():
    with pytest.raises(GradcheckError):
        gradcheck(lambda x: x.detach() * x, [leaf(3)])


def refused_if_undefined(x):
    y = x.clone()

    def hook(grad):
        if grad is None:
            raise RuntimeError("undefined")

    y.register_hook(hook)
    return y


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradients_that_are_not_there_are_tried_and_it_is_said_how_to_do_without(
    fast_mode,
):
    x = leaf(1)

    with (
        pytest.warns(UserWarning, match="New undefined gradient support") as told,
        pytest.raises(GradcheckError, match="to handle undefined output grads"),
    ):
        gradcheck(refused_if_undefined, [x], fast_mode=fast_mode)

    assert told[0].filename == __file__
    assert gradcheck(
        refused_if_undefined, [x], fast_mode=fast_mode, check_undefined_grad=False
    )


def test_gradients_made_of_nothing_are_found():
    class MadeOfNothing(gv.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return gv.ones(1, dtype=gv.float64) if grad is None else grad

    with (
        pytest.warns(UserWarning, match="New undefined gradient support"),
        pytest.raises(GradcheckError, match="to be undefined or zero"),
    ):
        gradcheck(MadeOfNothing.apply, [leaf(1)])


def test_inputs_without_gradients_are_left_alone():
    assert gradcheck(lambda x, n: x * n, [leaf(2), gv.tensor([2, 3])])


def test_too_few_digits_are_warned_of():
    with pytest.warns(UserWarning, match="is not a double precision"):
        gradcheck(gv.sin, [gv.ones(1, requires_grad=True)], atol=1)


def complex_leaf(*shape):
    random = np.random.default_rng(2)
    values = random.uniform(0.5, 1.5, shape) + 1j * random.uniform(0.5, 1.5, shape)
    return gv.tensor(values, requires_grad=True)


both_modes = pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])


@both_modes
def test_several_outputs_of_several_inputs_pass(fast_mode):
    def function(x, y):
        return x * y.sin(), x + y, (x * x).sum()

    assert gradcheck(function, [leaf(2, 3), leaf(3)], fast_mode=fast_mode)
    assert gradgradcheck(function, [leaf(2, 3), leaf(3)], fast_mode=fast_mode)


@both_modes
@pytest.mark.parametrize(
    "function", [gv.abs, gv.exp, lambda z: (z * z.conj()).real, gv.view_as_real]
)
def test_complex_numbers_pass(function, fast_mode):
    assert gradcheck(function, complex_leaf(2, 2), fast_mode=fast_mode)
    assert gradgradcheck(function, complex_leaf(2, 2), fast_mode=fast_mode)


@both_modes
def test_a_missing_conjugate_is_found(fast_mode):
    wrong = unary("WrongBackward0", np.exp, lambda grad, result: grad * result)

    with pytest.raises(GradcheckError, match="considering the imaginary part"):
        gradcheck(wrong, complex_leaf(3), fast_mode=fast_mode)


def test_a_wrong_second_derivative_is_found():
    # The formula is right, but takes the input out of the graph.
    wrong = unary("WrongBackward0", np.sin, lambda grad, x: grad * np.cos(raw(x)))

    assert gradcheck(wrong, leaf(3))
    assert not gradgradcheck(wrong, leaf(3), raise_exception=False)


def test_elements_are_put_back():
    x = leaf(4)
    before = x.detach().clone()

    gradcheck(gv.sin, x)

    assert gv.equal(x, before)


def test_a_backward_that_is_not_linear_is_found():
    wrong = unary("WrongBackward0", np.exp, lambda grad, result: grad * result + 1e-9)

    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(wrong, leaf(3))


def test_a_backward_that_differs_from_call_to_call_is_found():
    calls = iter(range(1000))
    wrong = unary(
        "WrongBackward0", np.exp, lambda grad, result: grad * (result + next(calls))
    )

    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(wrong, leaf(3))


def test_an_input_whose_elements_overlap_is_refused():
    x = gv.from_numpy(np.broadcast_to(np.ones(3), (2, 3))).requires_grad_()

    with pytest.raises(RuntimeError, match="dimension with stride 0"):
        gradcheck(gv.sin, x)


def test_without_gradients_there_is_nothing_to_check():
    with pytest.raises(ValueError, match="at least one input tensor to require"):
        gradcheck(gv.sin, gv.ones(2))


def test_an_output_without_a_gradient_must_have_no_slope():
    assert gradcheck(lambda x: x.detach() * 0, leaf(3))
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, leaf(3))


def test_a_verdict_may_be_returned():
    assert not gradcheck(lambda x: x.detach() * x, leaf(3), raise_exception=False)


def test_checks_that_need_other_modes_are_refused():
    with pytest.raises(NotImplementedError, match="vmap"):
        gradcheck(gv.sin, leaf(1), check_batched_grad=True)
    with pytest.raises(NotImplementedError, match="backward mode only"):
        gradcheck(gv.sin, leaf(1), check_forward_ad=True)


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("shape", lambda x: gv.cat([x, x])),
        ("dtype", lambda x: x.to(gv.float32)),
    ],
)
def test_outputs_must_be_alike_wherever_the_inputs_are(what, changed, fast_mode):
    def function(x):
        return changed(x) if bool(gv.all(x >= 1)) else x

    x = gv.ones(1, dtype=gv.float64, requires_grad=True)

    with pytest.raises(AssertionError, match=f"with the same {what} when inputs are"):
        gradcheck(function, x, fast_mode=fast_mode)
