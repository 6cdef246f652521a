"""The steps of a training: what is usual, and which are not like that."""

from collections.abc import Iterator
from typing import Final

from rich.console import Console

from gradviz.analysis.training.steps import StepParts, Steps
from gradviz.render.terminal.cells import INDENT, print_heading, print_wrapped
from gradviz.render.terminal.row_printer import print_rows
from gradviz.render.words.text import count, duration

MAX_ODD: Final = 5
_BAD: Final = frozenset({"failed", "unfinished"})


def print_steps(steps: Steps, console: Console) -> None:
    """Print what a step usually takes, the slowest, and the odd ones."""
    by = {
        "step_begun": "as the program counts them",
        "shape": "found by the shapes of passes",
    }
    title = f"{count(len(steps.steps), 'step')}, {by[steps.found_by]}"
    print_heading(console, title)
    has_calls = any(
        one.parts.forward_ns or one.parts.optimizer_ns for one in steps.steps
    )
    parts = ["forward", "backward", "optimizer", "other"]
    if not has_calls:
        parts = ["backward", "other"]
    told = list(_rows(steps))
    rows = (
        [
            number,
            what,
            duration(figures.duration_ns),
            *(duration(getattr(figures, f"{part}_ns")) for part in parts),
        ]
        for number, what, figures in told
    )
    bad = {i for i, (_, what, _) in enumerate(told) if what in _BAD}
    columns = ("step", "what", "took", *parts)
    print_rows(console, columns, rows, alarming=bad, indent=2)
    shown = min(len(_odd(steps)), MAX_ODD)
    if more := len(_odd(steps)) - shown:
        told_too = f"and {more:,} more that are slow, fast or failed"
        print_wrapped(console, told_too, "", INDENT)
    if steps.num_outside:
        outside = f"{count(steps.num_outside, 'pass')} outside of any step"
        print_wrapped(console, outside, "dim", INDENT)
    if steps.num_unseen:
        unseen = f"{count(steps.num_unseen, 'pass')} after these not looked at"
        print_wrapped(console, unseen, "", INDENT)


def _rows(steps: Steps) -> Iterator[tuple[str, str, StepParts]]:
    """Return the cells of each row: number, kind, figures."""
    if steps.median is not None:
        yield "", "median", steps.median
        slowest = steps.steps[steps.slowest]
        yield str(slowest.number), "slowest", slowest.parts
    for place, why in _odd(steps)[:MAX_ODD]:
        one = steps.steps[place]
        yield str(one.number), why, one.parts


def _odd(steps: Steps) -> list[tuple[int, str]]:
    """The odd steps but for the slowest, those that failed first, then the longest."""

    def rank(one: tuple[int, str]) -> tuple[bool, int]:
        place, why = one
        return why in {"slow", "fast"}, -steps.steps[place].parts.duration_ns

    odd = [(one.place, one.why) for one in steps.odd if one.place != steps.slowest]
    return sorted(odd, key=rank)
