"""The steps of a training: what is usual, and which are not like that."""

from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.text import Text

from gradviz.analysis.steps import StepParts, Steps
from gradviz.render.terminal.tables import heading, indented, make_table
from gradviz.render.text import count, duration

MAX_ODD: Final = 5


def print_steps(steps: Steps, console: Console) -> None:
    """Print what a step usually takes, the slowest, and the odd ones."""
    by = {
        "step_begun": "as the program counts them",
        "shape": "found by the shapes of passes",
    }
    console.print(heading(f"{count(len(steps.steps), 'step')}, {by[steps.found_by]}"))
    rows = list(_rows(steps))
    has_calls = any(
        one.parts.forward_ns or one.parts.optimizer_ns for one in steps.steps
    )
    parts = ["forward", "backward", "optimizer", "other"]
    if not has_calls:
        parts = ["backward", "other"]
    table = make_table("step", "what", "took", *parts)
    for number, what, figures, style in rows:
        cells = [duration(getattr(figures, f"{part}_ns")) for part in parts]
        texts = [number, what, duration(figures.duration_ns), *cells]
        table.add_row(*(Text(text, style=style) for text in texts))
    console.print(indented(table))
    shown = min(len(_odd(steps)), MAX_ODD)
    if more := len(_odd(steps)) - shown:
        console.print(Text(f"  and {more:,} more that are slow, fast or failed"))
    if steps.num_outside:
        told = f"  {count(steps.num_outside, 'pass')} outside of any step"
        console.print(Text(told, style="dim"))


def _rows(steps: Steps) -> Iterator[tuple[str, str, StepParts, str]]:
    """What stands in each row: number, what it is, figures, style."""
    if steps.median is not None:
        yield "", "median", steps.median, ""
        slowest = steps.steps[steps.slowest]
        yield str(slowest.number), "slowest", slowest.parts, ""
    for place, why in _odd(steps)[:MAX_ODD]:
        is_bad = why in {"failed", "unfinished"}
        one = steps.steps[place]
        yield str(one.number), why, one.parts, "bold red" if is_bad else ""


def _odd(steps: Steps) -> list[tuple[int, str]]:
    """The odd steps but for the slowest, those that failed first, then the longest."""

    def rank(one: tuple[int, str]) -> tuple[bool, int]:
        place, why = one
        return why in {"slow", "fast"}, -steps.steps[place].parts.duration_ns

    odd = [(one.place, one.why) for one in steps.odd if one.place != steps.slowest]
    return sorted(odd, key=rank)
