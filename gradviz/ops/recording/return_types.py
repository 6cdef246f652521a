"""What ops with several results return: named tuples, under the names of the ops."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from gradviz.ops.recording.variable import Value


class Extremes(NamedTuple):
    """Elements chosen along a dimension.

    Attributes:
        values: The elements.
        indices: Where along the dimension they were.
    """

    values: Value
    indices: Value

    def __repr__(self) -> str:
        return _printed(type(self).__name__, self._asdict())


class Range(NamedTuple):
    """What ``aminmax`` returns.

    Attributes:
        min: The smallest elements.
        max: The largest.
    """

    min: Value
    max: Value

    def __repr__(self) -> str:
        return _printed("aminmax", self._asdict())


def _printed(name: str, results: dict[str, Value]) -> str:
    listed = ",\n".join(f"{field}={value!r}" for field, value in results.items())
    return f"gradviz.return_types.{name}(\n{listed})"


#: Makes what one op of a family returns.
ExtremesClass: TypeAlias = Callable[..., Extremes]


def _kind(name: str) -> ExtremesClass:
    """The class of what one op returns."""
    described = f"What ``{name}`` along a dimension returns."
    attributes = {"__slots__": (), "__doc__": described, "__module__": __name__}
    return type(name, (Extremes,), attributes)


max = _kind("max")
min = _kind("min")
median = _kind("median")
nanmedian = _kind("nanmedian")
mode = _kind("mode")
kthvalue = _kind("kthvalue")
sort = _kind("sort")
topk = _kind("topk")
cummax = _kind("cummax")
cummin = _kind("cummin")
