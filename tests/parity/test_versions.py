"""Counts of changes, inference mode and what is refused: as in PyTorch (G17)."""

import pytest

import gradviz

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def result_then_changed(lib, name):
    x = lib.tensor([0.5, 0.25], requires_grad=True)
    y = getattr(x, name)()
    y.add_(1)
    y.sum().backward()
    return x.grad.tolist()


def input_then_changed(lib, name):
    x = lib.tensor([0.5, 0.25], requires_grad=True) * 1
    y = getattr(x, name)()
    x.mul_(2)
    y.sum().backward()


NAMES = (
    "abs", "cos", "exp", "log", "log1p", "neg", "reciprocal", "relu", "sigmoid", "sin",
    "sqrt", "square", "tanh",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("program", [result_then_changed, input_then_changed])
def test_a_change_in_place_is_noticed_as_in_pytorch(program, name):
    assert outcome(gradviz, program, name) == outcome(torch, program, name)


def detach_in_place(lib):
    y = lib.tensor(1.0, requires_grad=True).clone()
    z = y.sin()
    y.detach_()
    z.backward()


def data_keeps_no_count(lib):
    x = lib.tensor([1.0, 2.0])
    x.data.add_(1)
    x.detach().add_(1)
    x[0].add_(1)
    return x._version, x.tolist()


def data_is_set(lib):
    x = lib.tensor([2.0], requires_grad=True)
    y = x * x
    x.data = lib.tensor([100.0])
    y.backward()
    return x.grad.tolist()


def data_of_integers(lib):
    lib.tensor([2.0], requires_grad=True).data = lib.tensor([1])


def inference_tensor_changed(lib):
    with lib.inference_mode():
        x = lib.ones(2)
    x.add_(1)


def inference_tensor_counts(lib):
    with lib.inference_mode():
        x = lib.ones(2)
    return x._version


def inference_tensor_saved(lib):
    with lib.inference_mode():
        x = lib.ones(2)
    return lib.ones(2, requires_grad=True) * x


def inference_tensor_used(lib):
    with lib.inference_mode():
        x = lib.ones(2)
        y = x + 1
    z = x + 1
    total = lib.ones(2, requires_grad=True) + x
    return [one.is_inference() for one in (x, y, z, x[0], total, x.clone())]


def inference_tensor_wants_gradients(lib):
    with lib.inference_mode():
        x = lib.ones(2)
    x.requires_grad_()


def view_in_inference_mode(lib):
    x = lib.ones(2, requires_grad=True) * 1
    with lib.inference_mode():
        view = x[0]
    assert not view.is_inference()
    view.add_(1)


def normal_tensor_in_inference_mode(lib):
    x = lib.ones(2, requires_grad=True) * 1
    with lib.inference_mode():
        x.add_(1)
        inner = lib.is_grad_enabled(), lib.is_inference_mode_enabled()
        with lib.inference_mode(False):
            outer = lib.is_grad_enabled(), lib.is_inference_mode_enabled()
    return inner, outer, x._version, x.is_inference()


def integers_want_gradients(lib):
    lib.tensor([1]).requires_grad = True


def gradient_of_another_dtype(lib):
    x = lib.ones(2, requires_grad=True)
    x.grad_dtype = lib.float64
    (x * 2).sum().backward()
    return str(x.grad.dtype).split(".")[-1], str(x.grad_dtype).split(".")[-1]


def gradient_of_any_dtype(lib):
    x = lib.ones(2, requires_grad=True)
    x.grad_dtype = None
    x.grad = lib.ones(2, dtype=lib.float64)
    return x.grad_dtype


def gradient_dtype_of_a_result(lib):
    (lib.ones(2, requires_grad=True) * 2).grad_dtype  # noqa: B018 - asking is the test


def gradient_dtype_beside_a_gradient(lib):
    x = lib.ones(2, requires_grad=True)
    x.grad = lib.ones(2)
    x.grad_dtype = lib.float64


def gradient_of_a_wrong_shape(lib):
    lib.ones(2, requires_grad=True).grad = lib.ones(3)


def gradient_of_a_wrong_dtype(lib):
    lib.ones(2, requires_grad=True).grad = lib.ones(2, dtype=lib.float64)


def gradient_of_no_tensor(lib):
    lib.ones(2, requires_grad=True).grad = 3


def gradient_of_itself(lib):
    x = lib.ones(2, requires_grad=True)
    x.grad = x


def out_of_what_needs_gradients(lib):
    x = lib.ones(2, requires_grad=True)
    lib.add(x, 1, out=lib.empty(2))


def out(lib):
    result = lib.empty(2)
    returned = lib.add(lib.ones(2), 1, out=result)
    return returned is result, result.tolist(), result._version


def resized_in_inference_mode(lib):
    x = lib.tensor([1.0, 2.0, 3.0, 4.0])
    with lib.inference_mode():
        y = lib.tensor([1.0, 2.0]).resize_(1)
        x.resize_(2)
        return x.tolist(), y.tolist(), x._version, x.is_inference()


def inference_tensor_resized_outside(lib):
    with lib.inference_mode():
        x = lib.tensor([1.0, 2.0])
    x.resize_(1)


def resized_although_it_requires_gradients(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    with lib.no_grad():
        x.resize_(1)


def resized_in_inference_mode_although_it_requires_gradients(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    with lib.inference_mode():
        z = lib.ones(2, requires_grad=True).resize_(1)
        x.resize_(1)
        y.resize_as_(x)
    return x.tolist(), x._version, y.tolist(), z.tolist(), z.requires_grad


def what_may_not_be_deleted(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True) * 2
    errors = []
    for name in ("data", "requires_grad", "_grad_fn", "_backward_hooks"):
        try:
            delattr(x, name)
        except RuntimeError as error:
            errors.append(str(error))
    return errors, x.requires_grad, x._grad_fn.name(), x._backward_hooks


PROGRAMS = [
    inference_tensor_resized_outside,
    resized_although_it_requires_gradients,
    resized_in_inference_mode,
    resized_in_inference_mode_although_it_requires_gradients,
    what_may_not_be_deleted,
    data_is_set,
    data_keeps_no_count,
    data_of_integers,
    detach_in_place,
    gradient_dtype_beside_a_gradient,
    gradient_dtype_of_a_result,
    gradient_of_a_wrong_dtype,
    gradient_of_a_wrong_shape,
    gradient_of_another_dtype,
    gradient_of_any_dtype,
    gradient_of_itself,
    gradient_of_no_tensor,
    inference_tensor_changed,
    inference_tensor_counts,
    inference_tensor_saved,
    inference_tensor_used,
    inference_tensor_wants_gradients,
    integers_want_gradients,
    normal_tensor_in_inference_mode,
    out,
    out_of_what_needs_gradients,
    view_in_inference_mode,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_a_program_ends_as_in_pytorch(program):
    assert outcome(gradviz, program) == outcome(torch, program)


def outcome(lib, program, *args):
    """Return the result of a program, or the type and text of its error."""
    try:
        return program(lib, *args)
    except Exception as error:  # noqa: BLE001 - errors are compared too
        return type(error), str(error).replace("torch.", "gradviz.")
