"""Values that may be sent: nested lists and dicts of tensors, arrays, plain values.

A value becomes a *form*, which consists of what JSON knows, and the arrays beside it.
Nothing is pickled: what has no form cannot be sent.

Note [Packed values]
~~~~~~~~~~~~~~~~~~~~
None, booleans, texts, integers of 64 bits and finite floats are their own form.
Everything else is a list that starts with its kind: ``["list", ...]``, ``["tuple",
...]``, ``["dict", [key, value], ...]``, ``["tensor", index, needs_grad]``, ``["array",
index]``, ``["bytes", index]``, ``["int", "123"]``, ``["float", "nan"]``, ``["complex",
real, imaginary]``, ``["rref", owner, id]``. An index refers to one of the arrays.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from gradviz.backends.base import Array
from gradviz.backends.device import CPU
from gradviz.errors import UserError
from gradviz.ops.variables.variable import Variable, variable

#: See Note [Packed values].
Packed: TypeAlias = Any

#: Maximum nesting of values; a value that contains itself is deeper than that.
MAX_DEPTH: Final = 100

_INT_64: Final = range(-(2**63), 2**63)


class ValueNotSentError(UserError, TypeError):
    """A value cannot be sent to another worker."""


class Packer:
    """Converts values to forms, and collects the arrays beside them.

    Args:
        pack_other: Makes a form of what is no plain value; None if it has none.

    Attributes:
        arrays: Copies of all arrays, in order. What is sent may leave later, from
            another thread, and must be what it was at the time of the call.
        tensors: Those that were tensors, in order.
    """

    def __init__(
        self, pack_other: Callable[[object], Packed | None] = lambda _: None
    ) -> None:
        self._pack_other = pack_other
        self.arrays: list[Array] = []
        self.tensors: list[Variable] = []

    def pack(self, value: object, depth: int = 0) -> Packed:  # noqa: C901 - a case each
        """The form of a value.

        Raises:
            ValueNotSentError: It has none.
        """
        if depth > MAX_DEPTH:
            raise ValueNotSentError(
                f"a value that is nested more than {MAX_DEPTH} times, or contains "
                f"itself, cannot be sent to another worker"
            )
        match value:
            case None | bool():
                return value
            case Variable():
                return self._pack_tensor(value)
            case np.ndarray():
                return ["array", self._add(value)]
            case np.generic():
                return self.pack(value.item(), depth + 1)
            case str():
                return self._pack_text(value)
            case int():
                return int(value) if value in _INT_64 else ["int", str(int(value))]
            case float():
                number = float(value)
                return number if math.isfinite(number) else ["float", str(number)]
            case complex():
                parts = (self.pack(value.real), self.pack(value.imag))
                return ["complex", *parts]
            case bytes():
                return ["bytes", self._append(np.frombuffer(value, np.uint8))]
            case _:
                return self._pack_container(value, depth)

    def _pack_container(self, value: object, depth: int) -> Packed:
        kind = type(value)
        if isinstance(value, (list, tuple)) and kind in (list, tuple):
            name = "list" if kind is list else "tuple"
            return [name, *(self.pack(one, depth + 1) for one in value)]
        if isinstance(value, dict) and kind is dict:
            return [
                "dict",
                *(
                    [self.pack(key, depth + 1), self.pack(one, depth + 1)]
                    for key, one in value.items()
                ),
            ]
        form = self._pack_other(value)
        if form is None:
            raise ValueNotSentError(
                f"a {kind.__module__}.{kind.__qualname__} cannot be sent to another "
                f"worker: expected tensors, arrays, numbers, texts, bytes, None, or "
                f"lists, tuples and dicts of them"
            )
        return form

    def _pack_text(self, text: str) -> Packed:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueNotSentError(
                f"the text {text!r} cannot be sent to another worker: it is no Unicode"
            ) from None
        return str(text)

    def _pack_tensor(self, tensor: Variable) -> Packed:
        if tensor.device is not CPU:
            raise ValueNotSentError(
                f"RPC only sends CPU tensors, and one is on {tensor.device}: please "
                f"move your tensors to CPU before sending them over RPC"
            )
        self.tensors.append(tensor)
        return ["tensor", self._add(tensor.array), tensor.requires_grad]

    def _add(self, array: Array) -> int:
        if array.dtype.hasobject or array.dtype.names is not None:
            raise ValueNotSentError(
                f"an array of dtype {array.dtype} cannot be sent to another worker: "
                f"expected numbers"
            )
        return self._append(np.array(array, order="C"))

    def _append(self, array: Array) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1


class Unpacker:
    """Turns forms into values again.

    Args:
        arrays: Arrays that came beside them; copied where they cannot be written to,
            for what was received belongs to who received it.
        unpack_other: Makes a value of a form that `Packer.pack_other` has made.

    Attributes:
        tensors: The tensors that were found, in order; leaves as yet.
    """

    def __init__(
        self,
        arrays: Sequence[Array],
        unpack_other: Callable[[Sequence[Packed]], object] | None = None,
    ) -> None:
        self._arrays = arrays
        self._unpack_other = unpack_other
        self.tensors: list[Variable] = []

    def unpack(self, form: Packed) -> Any:  # noqa: ANN401, C901 - of any type; a case each
        """The value of a form.

        Raises:
            ValueError: It is none, or not well formed.
        """
        if not isinstance(form, list):
            return form
        match form:
            case ["list", *forms]:
                return [self.unpack(one) for one in forms]
            case ["tuple", *forms]:
                return tuple(self.unpack(one) for one in forms)
            case ["dict", *pairs]:
                return {self.unpack(key): self.unpack(one) for key, one in pairs}
            case ["tensor", int(index), bool(needs_grad)]:
                return self._unpack_tensor(index, needs_grad=needs_grad)
            case ["array", int(index)]:
                return self._array(index)
            case ["bytes", int(index)]:
                return self._array(index).tobytes()
            case ["int" | "float" as kind, str(text)]:
                return int(text) if kind == "int" else float(text)
            case ["complex", real, imaginary]:
                return complex(self.unpack(real), self.unpack(imaginary))
            case _ if self._unpack_other is not None:
                return self._unpack_other(form)
            case _:
                raise ValueError(f"not the form of a value: {form!r:.80}")

    def _array(self, index: int) -> Array:
        if not 0 <= index < len(self._arrays):
            raise ValueError(f"no array {index}: the message has {len(self._arrays)}")
        array = self._arrays[index]
        return array if array.flags.writeable else array.copy()

    def _unpack_tensor(self, index: int, *, needs_grad: bool) -> Variable:
        tensor: Variable = variable(self._array(index))
        tensor.version = None  # no inference tensor, even in inference mode
        tensor.needs_grad = needs_grad
        self.tensors.append(tensor)
        return tensor
