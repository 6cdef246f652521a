"""Facts: columns of what a viewer is told of many slices."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gradviz.analysis.tables.executions import MAX_TEXT
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Narrow, narrow


class Fact(NamedTuple):
    """A number or a text for each slice of a kind, by its place.

    Attributes:
        values: The numbers, or the places of the texts.
        texts: The texts; None for numbers.
        is_told: False for slices that lack it; None if all have it.
    """

    values: Narrow
    texts: Sequence[str] | None = None
    is_told: npt.NDArray[np.bool_] | None = None

    def of(self, place: int) -> int | str:
        """Return that of one slice."""
        value = int(self.values[place])
        return value if self.texts is None else self.texts[value]

    def at(self, places: "npt.NDArray[Any]") -> "Fact":
        """Those of some slices."""
        is_told = None if self.is_told is None else self.is_told[places]
        return Fact(self.values[places], self.texts, is_told)


def narrow_fact(
    values: Narrow,
    texts: Sequence[str] | None = None,
    is_told: npt.NDArray[np.bool_] | None = None,
) -> Fact:
    """Return a fact that takes as little memory as its numbers allow."""
    return Fact(narrow(values), texts, is_told)


class Details(NamedTuple):
    """The titles of all slices of a kind, and their arguments by name."""

    title: Fact
    arguments: Mapping[str, Fact]

    def name(self, place: int) -> str:
        """Return the title of one slice."""
        return str(self.title.of(place))

    def said(self, place: int) -> dict[str, int | str]:
        """Return the arguments of one slice."""
        return {
            name: one.of(place)
            for name, one in self.arguments.items()
            if one.is_told is None or one.is_told[place]
        }


def each(texts: Sequence[str]) -> Fact:
    """Return a text for each slice."""
    return narrow_fact(np.arange(len(texts)), texts)


def where_not_empty(texts: Sequence[str], places: Narrow) -> Fact:
    """Return a text for each slice that has one that is not empty."""
    is_told = np.array([bool(one) for one in texts], np.bool_)
    return narrow_fact(places, texts, is_told[places])


def of_strings(
    trace: Trace, places: Narrow, worded: Callable[[str], str] = str
) -> Fact:
    """Return texts by their places among those of the trace."""
    different, own = np.unique(places, return_inverse=True)
    cut = [shortened(trace.strings[place], MAX_TEXT) for place in different.tolist()]
    return narrow_fact(own, [*map(worded, cut)])
