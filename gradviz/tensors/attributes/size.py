"""The shape of a tensor."""

from typing import Any, Self, SupportsIndex, overload


class Size(tuple[int, ...]):
    """The length of each dimension: a tuple that counts elements.

    Source: torch.Size.
    """

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements."""
        product = 1
        for length in self:
            product *= length
        return product

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        return type(self)(item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Any:  # noqa: ANN401 - as that of a tuple
        return type(self)(super().__add__(other))

    def __radd__(self, other: tuple[int, ...]) -> Self:
        return type(self)((*other, *self))

    def __mul__(self, times: SupportsIndex) -> Self:
        return type(self)(super().__mul__(times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"gradviz.Size({list(self)})"
