"""Methods that make something else of a tensor: another dtype, a Python value."""

import builtins
import operator
from typing import Any, Self, overload

import numpy as np

from gradviz.backends.arrays.pinned_array import handed_out
from gradviz.backends.base import backend_of, current_accelerator
from gradviz.backends.device import CPU, Device
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.ops.shapes.copying import clone, to_copy
from gradviz.ops.variables.variable import Value, Variable, detached
from gradviz.tensors.attributes import dtypes
from gradviz.tensors.gradient_cuts import report_cut


class Conversion(Variable):
    """To other dtypes and devices, to NumPy's arrays and Python's numbers."""

    __slots__ = ()

    def to(
        self,
        *args: DTypeLike | Device | str | builtins.int | Variable,
        dtype: DTypeLike = None,
        device: Device | str | builtins.int | None = None,
        non_blocking: builtins.bool = False,
        copy: builtins.bool = False,
        memory_format: object = None,
    ) -> Self:
        """The tensor with another dtype, on another device, or like another tensor.

        Args:
            *args: A dtype; a device, its name, or the index of an accelerator; both;
                or a tensor to be like. Then `non_blocking` and `copy`.
            dtype: The dtype.
            device: The device.
            non_blocking: Have a copy between pinned memory and a device go on when it
                returns. What was copied to the host is there once the stream that
                was current has come so far: synchronize before you look.
            copy: Copy even if there is nothing to change.
            memory_format: Ignored.

        Returns:
            The tensor itself if there is nothing to change.

        Raises:
            TypeError: Something is given twice by position.
            RuntimeError: There is no such device.
        """
        del memory_format
        flags = [arg for arg in args if isinstance(arg, builtins.bool)]
        if len(args) > 1:
            _check_once(args)
        non_blocking, copy = flags + [non_blocking, copy][len(flags) :]
        for arg in args:
            match arg:
                case Variable():
                    dtype, device = arg.array.dtype, arg.device
                case builtins.bool():
                    pass  # one of the flags
                case str() | Device() | builtins.int():
                    device = arg
                case _:
                    dtype = arg
        own = self.array.dtype
        wanted = own if dtype is None else np.dtype(dtype)
        place = self.device if device is None else _place(device)
        backend_of(place)  # raises if there is no such device
        if wanted == own and place is self.device:
            return clone(self) if copy else self
        source = self if wanted.kind in "fc" else detached(self)
        return to_copy(source, wanted, place, non_blocking)

    def float(self) -> Self:
        """The tensor in float32."""
        return self.to(dtypes.float32)

    def double(self) -> Self:
        """The tensor in float64."""
        return self.to(dtypes.float64)

    def half(self) -> Self:
        """The tensor in float16."""
        return self.to(dtypes.float16)

    def cfloat(self) -> Self:
        """The tensor in complex64."""
        return self.to(dtypes.complex64)

    def cdouble(self) -> Self:
        """The tensor in complex128."""
        return self.to(dtypes.complex128)

    def long(self) -> Self:
        """The tensor in int64, outside the graph."""
        return self.to(dtypes.int64)

    def int(self) -> Self:
        """The tensor in int32, outside the graph."""
        return self.to(dtypes.int32)

    def short(self) -> Self:
        """The tensor in int16, outside the graph."""
        return self.to(dtypes.int16)

    def char(self) -> Self:
        """The tensor in int8, outside the graph."""
        return self.to(dtypes.int8)

    def byte(self) -> Self:
        """The tensor in uint8, outside the graph."""
        return self.to(dtypes.uint8)

    def bool(self) -> Self:
        """Return for each element whether it is other than 0."""
        return self.to(dtypes.bool_)

    def astype(self, dtype: DTypeLike) -> Self:
        """NumPy's name of `to`, by which the engine casts gradients."""
        return self.to(dtype)

    @overload
    def type(self) -> str: ...
    @overload
    def type(self, dtype: DTypeLike, non_blocking: builtins.bool = False) -> Self: ...
    def type(self, dtype: DTypeLike = None, non_blocking: builtins.bool = False) -> Any:
        """The name of the tensor's type; given a dtype or such a name, `to` that."""
        del non_blocking
        if dtype is None:
            place = "" if self.device is CPU else f"{self.device.type}."
            return f"gradviz.{place}{scalar_type_name(self.array.dtype)}Tensor"
        return self.to(_named_types().get(dtype, dtype))

    def type_as(self, other: Variable) -> Self:
        """The tensor with the dtype and on the device of `other`."""
        return self.to(other)

    def numpy(self, *, force: builtins.bool = False) -> np.ndarray:
        """The elements as a NumPy array that shares their memory.

        Args:
            force: Detach and copy to the host first, where that is needed.

        Raises:
            RuntimeError: The tensor requires gradients.
            TypeError: It is not on the CPU.
        """
        if force:
            return detached(self).cpu().numpy()
        if self.requires_grad and GRAD_ENABLED.get():
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. "
                "Use tensor.detach().numpy() instead."
            )
        if self.device is not CPU:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. "
                f"Use Tensor.cpu() to copy the tensor to host memory first."
            )
        return handed_out(self.array)

    def item(self) -> builtins.bool | builtins.int | builtins.float:
        """The only element, as a Python number.

        Raises:
            RuntimeError: There are more, or none.
        """
        if self.array.size != 1:
            raise RuntimeError(
                f"a Tensor with {self.array.size} elements cannot be converted to "
                f"Scalar"
            )
        report_cut(self, "item")
        return self.array.item()

    def tolist(self) -> Any:  # noqa: ANN401 - as deep as the dimensions
        """The elements as nested lists of Python numbers."""
        report_cut(self, "tolist")
        return self.array.tolist()

    # --- Python's conversions ---------------------------------------------------------

    def __float__(self) -> builtins.float:
        return builtins.float(self._only_element())

    def __int__(self) -> builtins.int:
        return builtins.int(self._only_element())

    def __complex__(self) -> complex:
        return complex(self._only_element())

    def __index__(self) -> builtins.int:
        if self.array.dtype.kind not in "iub" or self.array.size != 1:
            raise TypeError(
                "only integer tensors of a single element can be converted to an index"
            )
        return operator.index(self.array.item())

    def __bool__(self) -> builtins.bool:
        size = self.array.size
        if size != 1:
            number = "more than one value" if size else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {number} is ambiguous")
        return builtins.bool(self.item())

    def __format__(self, specification: str) -> str:
        if self.array.ndim or not specification:
            return object.__format__(self, specification)
        return format(self.item(), specification)

    def _only_element(self) -> Value:
        if self.array.size != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars"
            )
        return self.array.item()


def _check_once(args: tuple[Value, ...]) -> None:
    """Check the positional arguments of `Conversion.to`: each kind at most once."""
    kinds = [
        "flag"
        if isinstance(arg, builtins.bool)
        else "device"
        if isinstance(arg, str | Device | builtins.int)
        else "dtype"
        for arg in args
        if arg is not None and not isinstance(arg, Variable)
    ]
    tensors = sum(isinstance(arg, Variable) for arg in args)
    places = kinds.count("device") + tensors
    dtypes_given = kinds.count("dtype") + tensors
    if max(places, dtypes_given) > 1 or kinds.count("flag") > 2:
        listed = ", ".join(type(arg).__name__ for arg in args)
        raise TypeError(
            f"to() received an invalid combination of arguments - got ({listed}), but "
            f"expected (device, dtype), (dtype) or (tensor), then non_blocking and copy"
        )


def _place(device: Value) -> Device:
    """A device, by its name or by the index of one of the current accelerator's."""
    if isinstance(device, builtins.int):
        return Device(current_accelerator().type, device)
    return Device(device)


def _named_types() -> dict[Any, dtypes.DType]:
    """Return names such as ``gradviz.FloatTensor``, and their dtypes."""
    every = (
        dtypes.float16,
        dtypes.float32,
        dtypes.float64,
        dtypes.complex64,
        dtypes.complex128,
        dtypes.uint8,
        dtypes.int8,
        dtypes.int16,
        dtypes.int32,
        dtypes.int64,
        dtypes.bool_,
    )
    return {f"gradviz.{scalar_type_name(one)}Tensor": one for one in every}
