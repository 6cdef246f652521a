"""Ranges of values, and the rule by which an op is the first that is not finite."""

import math
from collections.abc import Iterable
from functools import reduce
from typing import Final, NamedTuple


class ValueRange(NamedTuple):
    """A range of values of one array, or of several together.

    Attributes:
        has_nan: True if one is NaN.
        has_infinity: True if one is infinite.
        smallest: The least magnitude of those that are finite and not zero; infinite
            if there is none.
        largest: The greatest magnitude of those that are finite; negative if there is
            none.
    """

    has_nan: bool = False
    has_infinity: bool = False
    smallest: float = math.inf
    largest: float = -1.0

    @property
    def is_finite(self) -> bool:
        """True if every value is finite."""
        return not (self.has_nan or self.has_infinity)

    def joined(self, other: "ValueRange") -> "ValueRange":
        """Return the range of the values of both."""
        return ValueRange(
            self.has_nan or other.has_nan,
            self.has_infinity or other.has_infinity,
            min(self.smallest, other.smallest),
            max(self.largest, other.largest),
        )

    def magnitudes(self) -> tuple[str, str]:
        """Return the smallest and the largest magnitude as texts, empty if unknown."""
        return (
            repr(self.smallest) if math.isfinite(self.smallest) else "",
            repr(self.largest) if self.largest >= 0 else "",
        )

    def explains(self, result: "ValueRange") -> bool:
        """Return whether inputs in this range explain a result that is not finite.

        NaN spreads from NaN. An infinity may be meant, as in a mask of attention, so a
        NaN that was computed from one is still the first.
        """
        return self.has_nan or (self.has_infinity and not result.has_nan)


def range_of_number(number: complex) -> ValueRange:
    """Return the range of a single number."""
    try:
        magnitude = abs(number)
    except OverflowError:  # of finite parts
        magnitude = math.inf
    if math.isnan(magnitude):
        return ValueRange(has_nan=True)
    if math.isinf(magnitude):
        return ValueRange(has_infinity=True)
    return ValueRange(smallest=magnitude or math.inf, largest=magnitude)


def joined_range(ranges: Iterable[ValueRange]) -> ValueRange:
    """Return the range of the values of all."""
    return reduce(ValueRange.joined, ranges, ValueRange())


class FirstFound:
    """First findings of each pass: at most an infinity, and then a NaN. Any thread."""

    def __init__(self) -> None:
        #: The worst that was found, by pass. Changed by single calls into C.
        self._worst: dict[int, int] = {}

    def is_done(self, task: int) -> bool:
        """Return whether nothing more is to be found in a pass."""
        return self._worst.get(task, 0) == _NAN

    def has_any(self, task: int) -> bool:
        """Return whether a finding was made in a pass."""
        return task in self._worst

    def forget(self, task: int) -> None:
        """Start a pass over."""
        self._worst.pop(task, None)

    def is_news(self, task: int, seen: ValueRange) -> bool:
        """Note a finding; return whether it is the first of its kind in its pass."""
        worst = _NAN if seen.has_nan else _INFINITY
        if self._worst.get(task, 0) >= worst:
            return False
        if len(self._worst) >= _MAX_PASSES:
            self._worst.pop(next(iter(self._worst), task), None)
        self._worst[task] = worst
        return True


_INFINITY: Final = 1
_NAN: Final = 2

#: Maximum number of passes with findings that are remembered.
_MAX_PASSES: Final = 1_000
