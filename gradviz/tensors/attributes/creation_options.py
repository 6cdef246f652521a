"""Options of functions that make tensors."""

import operator
from collections.abc import Collection, Mapping
from typing import Any, Final, TypedDict

import numpy as np

from gradviz.backends.device import Device
from gradviz.ops.conventions.dimensions import SizeArgs
from gradviz.ops.conventions.generator import Generator
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.ops.shapes.copying import MemoryFormat
from gradviz.ops.variables.variable import Variable
from gradviz.tensors.attributes.layout import Layout

#: One length of it.
_LENGTHS: Final = (int, np.integer, Variable)


class Options(TypedDict, total=False):
    """Options of functions that make tensors; each takes those that PyTorch's takes.

    Attributes:
        dtype: Type of the elements.
        device: Device of the elements, or its name; None for the default one, which
            `gradviz.device` says.
        requires_grad: True if gradients are wanted.
        pin_memory: Have them in pinned memory; see `Tensor.pin_memory`.
        layout: Makes no difference: there is one.
        memory_format: Makes no difference, of what is like another tensor or empty.
        generator: Of random numbers, for what draws some.
    """

    dtype: DTypeLike
    device: Device | str | None
    requires_grad: bool
    pin_memory: bool
    layout: Layout | None
    memory_format: MemoryFormat | None
    generator: Generator | None


#: Of `tensor` and its like.
OF_DATA: Final = frozenset({"dtype", "device", "requires_grad", "pin_memory"})

#: Of most functions.
USUAL: Final = OF_DATA | {"layout"}

#: Options of tensors whose elements do not matter, or that are like another tensor.
FORMATTED: Final = USUAL | {"memory_format"}

#: Options of tensors that draw random numbers.
RANDOM: Final = USUAL | {"generator"}

#: Types of options, and their names for users. The others are checked where they count.
_CLASSES: Final[dict[str, tuple[Any, str]]] = {
    "device": ((Device, str), "gradviz.device"),
    "requires_grad": (bool, "bool"),
    "pin_memory": (bool, "bool"),
    "layout": (Layout, "gradviz.layout"),
    "memory_format": (MemoryFormat, "gradviz.memory_format"),
    "generator": (Generator, "gradviz.Generator"),
}


def check_options(
    function: str, options: Mapping[str, Any], accepted: Collection[str] = USUAL
) -> None:
    """See that a function takes the options that it is given.

    It comes first in each function: who draws random numbers must not have drawn any.

    Args:
        function: Its name.
        options: Options that were given.
        accepted: The names that it takes.

    Raises:
        TypeError: There is no such option, or a value is of another type.
    """
    for name, value in options.items():
        if name not in accepted:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        if value is None or name not in _CLASSES:
            continue
        expected, word = _CLASSES[name]
        if not isinstance(value, expected):
            raise TypeError(
                f"{function}(): argument '{name}' must be {word}, not "
                f"{type(value).__name__}"
            )


def _is_length(value: object) -> bool:
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def shape_of(
    function: str, lengths: tuple[SizeArgs, ...], size: SizeArgs | None = None
) -> tuple[int, ...]:
    """A shape that was given one by one, as one sequence, or by name.

    Raises:
        TypeError: It was given in no way or in two, or is not made of integers.
        RuntimeError: A length is negative.
    """
    if size is not None:
        if lengths:
            raise TypeError(f"{function}() got multiple values for argument 'size'")
    elif not lengths:
        raise TypeError(f'{function}() missing 1 required positional arguments: "size"')
    given: Any = size
    if lengths:
        is_one_by_one = len(lengths) > 1 or isinstance(lengths[0], _LENGTHS)
        given = lengths if is_one_by_one else lengths[0]
    try:
        shape = tuple(map(operator.index, given))
    except TypeError:
        wrong = given
        if isinstance(given, (tuple, list)):
            wrong = next(one for one in given if not _is_length(one))
        raise TypeError(
            f"{function}(): argument 'size' (position 1) must be tuple of ints, not "
            f"{type(wrong).__name__}"
        ) from None
    if shape and min(shape) < 0:
        if function == "zeros":
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(shape)}: "
            f"{list(shape)}"
        )
    return shape
