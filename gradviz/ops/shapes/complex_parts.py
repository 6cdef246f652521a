"""Complex numbers and their parts: conjugates, and views as pairs of real numbers."""

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.base import Array
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value, raw


def _conjugate(x: Array) -> Array:
    return np.conjugate(x)


_conj = differentiable("ConjBackward0", x=lambda grad: conj(grad))(_conjugate)
_conj_physical = differentiable(
    "ConjPhysicalBackward0", x=lambda grad: conj_physical(grad)
)(_conjugate)

#: PyTorch has a node of its own for `conj_physical` in place.
conj_in_place = differentiable(
    "ConjPhysicalBackward1", x=lambda grad: conj_physical(grad)
)(_conjugate)


@differentiable("ViewAsRealBackward0", view=True, x=lambda grad: view_as_complex(grad))
def _view_as_real(x: Array) -> Array:
    return x[..., None].view(x.real.dtype)


@differentiable("ViewAsComplexBackward0", view=True, x=lambda grad: view_as_real(grad))
def _view_as_complex(x: Array) -> Array:
    dtype = np.result_type(x.dtype, np.complex64)
    pairs = x if x.flags.c_contiguous else x.copy()
    return pairs.view(dtype)[..., 0]


@differentiable(
    "SelectBackward0", view=True, x=lambda grad, index: _padded(grad, index)
)
def _part(x: Array, index: int) -> Array:
    return x[..., index]


@differentiable("SelectBackwardBackward0", x=lambda grad, index: _part(grad, index))
def _padded(x: Array, index: int) -> Array:
    pair = np.zeros_like(x, shape=(*x.shape, 2))
    assign(pair, (..., index), x)
    return pair


def is_complex(input: Value) -> bool:
    """Return whether the elements are complex numbers."""
    dtype = getattr(raw(input), "dtype", None)
    return isinstance(input, complex) if dtype is None else bool(dtype.kind == "c")


def conj(input: Value) -> Value:
    """Return the complex conjugate, or a real input itself."""
    dtype = getattr(input, "dtype", None)
    if dtype is None:
        return input.conjugate()
    return _conj(input) if dtype.kind == "c" else input


def conj_physical(input: Value) -> Value:
    """The complex conjugate. Differs: PyTorch's `conj` is lazy and this is not."""
    return _conj_physical(input) if is_complex(input) else input


def resolve_conj(input: Value) -> Value:
    """The tensor itself: conjugates are computed at once here."""
    return input


def resolve_neg(input: Value) -> Value:
    """The tensor itself: negatives are computed at once here."""
    return input


def view_as_real(input: Value) -> Value:
    """Complex numbers as pairs of real ones, in a new last dimension.

    Raises:
        RuntimeError: `input` is not complex.
    """
    if not is_complex(input):
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return _view_as_real(input)


def view_as_complex(input: Value) -> Value:
    """Pairs of real numbers, in the last dimension, as complex ones.

    Raises:
        RuntimeError: `input` does not have pairs of floats.
    """
    array = raw(input)
    if array.dtype.kind != "f" or array.dtype == np.float16:
        # Differs: PyTorch has complex numbers of half precision; NumPy has none.
        raise RuntimeError(
            f"view_as_complex is only supported for half, float and double tensors, "
            f"but got a tensor of scalar type: {scalar_type_name(array.dtype)}"
        )
    if not array.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if array.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    return _view_as_complex(input)


def real(input: Value) -> Value:
    """Return the real parts, or a real input itself."""
    return _part(_view_as_real(input), 0) if is_complex(input) else input


def imag(input: Value) -> Value:
    """The imaginary parts.

    Raises:
        RuntimeError: `input` is not complex.
    """
    if not is_complex(input):
        raise RuntimeError(
            "imag is not implemented for tensors with non-complex dtypes."
        )
    return _part(_view_as_real(input), 1)


PUBLIC = [
    *names("gv.f", imag, is_complex, real, view_as_complex, view_as_real),
    *names("gv.f x.f", conj, resolve_conj, resolve_neg),
    *names("gv.f(out=) x.f", conj_physical),
    *names("gv.f_ x.f_", conj_physical=conj_in_place),
    *names("np.f", conjugate=conj),
]
