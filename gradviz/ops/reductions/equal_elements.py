"""The order of equal elements, as PyTorch's algorithms leave them.

Note [Equal elements]
~~~~~~~~~~~~~~~~~~~~~
Which of several equal elements is the first, the best or the k-th is up to the
algorithm, and where it was decides where the gradient goes. PyTorch's are those of the
C++ standard library that it is built with, and a quickselect of its own; here they run
on ranks, equal for equal elements, and only on rows that have any. That is slow: in
large arrays equal elements keep their order instead.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from gradviz.backends.base import Array, beside, copy_to
from gradviz.backends.device import CPU

#: Takes the ranks of a row, returns the places of those chosen.
Algorithm: TypeAlias = Callable[[list[int]], list[int]]

#: Ranks, each with its place.
_Row: TypeAlias = list[tuple[int, int]]

#: Number of elements that are few enough.
_FEW: Final = 16_384

#: Rows of this length are sorted by insertion, which keeps the order.
SHORT: Final = 16

#: A row that is so many times as long as the choice is searched with a heap.
_MUCH_LONGER: Final = 64


def rearranged(
    x: Array,
    order: Array,
    dim: int,
    part: slice,
    algorithm: Algorithm,
    *,
    always: bool = False,
) -> Array:
    """A part of an order, with equal elements as an algorithm leaves them.

    Args:
        x: Tensor that is ordered.
        order: The indices that sort it along `dim`, one way or the other.
        dim: See above.
        part: Places of the order that are wanted, from a start to an end.
        algorithm: Chooses as many places, given the ranks of a row.
        always: True if it leaves its mark on rows without equal elements, too.

    Returns:
        The indices that are wanted.
    """
    first = np.moveaxis(copy_to(order, CPU), dim, -1)
    chosen = first[..., part].copy()
    if 0 < x.size <= _FEW:
        values = np.moveaxis(copy_to(x, CPU), dim, -1)
        differs = _differs(np.take_along_axis(values, first, -1))
        # Equal elements matter only if one of them is wanted.
        start = max((part.start or 0) - 1, 0)
        matters = ~np.all(differs[..., start : part.stop], axis=-1) | always
        for row in map(tuple, np.argwhere(matters)):
            ranks = np.zeros(first.shape[-1], np.int64)
            ranks[first[row][1:]] = np.cumsum(differs[row])
            chosen[row] = algorithm(ranks.tolist())
    return beside(x, np.moveaxis(chosen, -1, dim))


def _differs(ordered: np.ndarray) -> np.ndarray:
    """Return where an element differs from the one before; NaN equals NaN."""
    before, after = ordered[..., :-1], ordered[..., 1:]
    if ordered.dtype.kind != "f":
        return np.asarray(before != after)
    return np.asarray((before != after) & ~(np.isnan(before) & np.isnan(after)))


# --- sorting: std::sort -------------------------------------------------------------


def sorting(ranks: list[int]) -> list[int]:
    """All places, in the order of their ranks."""
    row = _row(ranks)
    _sort(row, 0, len(row))
    return [place for _, place in row]


def _row(ranks: list[int]) -> _Row:
    return [(rank, place) for place, rank in enumerate(ranks)]


def _rank(entry: tuple[int, int]) -> int:
    return entry[0]


def _sort(row: _Row, start: int, end: int) -> None:
    """Introsort: divided until parts are short, then by insertion at once."""
    parts = [(start, end)]
    while parts:
        low, high = parts.pop()
        while high - low > SHORT:
            cut = _partition(row, low, high)
            parts.append((cut, high))
            high = cut
    row[start:end] = sorted(row[start:end], key=_rank)  # insertion keeps the order


def _partition(row: _Row, low: int, high: int) -> int:
    """Put ranks below a median of three to the left; returns where they end."""
    a, b, c = low + 1, low + (high - low) // 2, high - 1
    if row[a][0] < row[b][0]:
        median = b if row[b][0] < row[c][0] else c if row[a][0] < row[c][0] else a
    else:
        median = a if row[a][0] < row[c][0] else c if row[b][0] < row[c][0] else b
    row[low], row[median] = row[median], row[low]
    pivot = row[low][0]
    left, right = low + 1, high
    while True:
        while row[left][0] < pivot:
            left += 1
        right -= 1
        while pivot < row[right][0]:
            right -= 1
        if left >= right:
            return left
        row[left], row[right] = row[right], row[left]
        left += 1


# --- choosing the best: std::nth_element, std::partial_sort -------------------------


def best(k: int, *, in_order: bool) -> Algorithm:
    """The algorithm that chooses the places of the `k` lowest ranks."""

    def choose(ranks: list[int]) -> list[int]:
        row = _row(ranks)
        if not k:
            return []
        if k * _MUCH_LONGER <= len(row):
            _sort_part(row, k)
        else:
            _select(row, k - 1)
            if in_order:
                _sort(row, 0, k - 1)
        return [place for _, place in row[:k]]

    return choose


def _select(row: _Row, n: int) -> None:
    """Put the entry at `n` that belongs there, with no larger one before it."""
    low, high = 0, len(row)
    while high - low > 3:
        cut = _partition(row, low, high)
        low, high = (cut, high) if cut <= n else (low, cut)
    row[low:high] = sorted(row[low:high], key=_rank)


def _sort_part(row: _Row, k: int) -> None:
    """Put the `k` lowest ranks to the front, in order, by way of a heap of them."""
    for parent in reversed(range(k // 2)):
        _sift(row, parent, k, row[parent])
    for place in range(k, len(row)):
        if row[place][0] < row[0][0]:
            entry, row[place] = row[place], row[0]
            _sift(row, 0, k, entry)
    for last in range(k - 1, 0, -1):
        entry, row[last] = row[last], row[0]
        _sift(row, 0, last, entry)


def _sift(heap: _Row, top: int, size: int, entry: tuple[int, int]) -> None:
    """Let a hole sink from the top to the bottom, and `entry` rise from there."""
    hole = child = top
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if heap[child][0] < heap[child - 1][0]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * child + 1
        heap[hole] = heap[child]
        hole = child
    while hole > top and heap[(hole - 1) // 2][0] < entry[0]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = entry


# --- choosing one: PyTorch's quickselect --------------------------------------------


def at_rank(k: int) -> Algorithm:
    """The algorithm that chooses the place of the `k`-th lowest rank, from 0.

    Source: aten/src/ATen/native/Sorting.cpp, quick_select_template.
    """

    def choose(ranks: list[int]) -> list[int]:
        row = _row(ranks)
        low, high = 0, len(row) - 1
        while high > low + 1:
            end, start = _divide(row, low, high)
            if end <= k:
                low = start
            if end >= k:
                high = end - 1
        if high == low + 1 and row[low][0] > row[high][0]:
            _swap(row, low, high)
        return [row[k][1]]

    return choose


def _divide(row: _Row, low: int, high: int) -> tuple[int, int]:
    """Move a median of three to its place; return that and the next one."""
    _swap(row, low + (high - low) // 2, low + 1)
    for one, other in ((low + 1, high), (low, high), (low + 1, low)):
        if row[one][0] > row[other][0]:
            _swap(row, one, other)
    left, right, pivot = low + 1, high, row[low][0]
    while True:
        left += 1
        while pivot > row[left][0]:
            left += 1
        right -= 1
        while row[right][0] > pivot:
            right -= 1
        if right < left:
            _swap(row, low, right)
            return right, left
        _swap(row, left, right)


def _swap(row: _Row, one: int, other: int) -> None:
    row[one], row[other] = row[other], row[one]
