"""Parameters: a row for each, with its gradient or the reason why it has none."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console

from gradviz.analysis.nodes.parameter_gradients import ParameterGradients, ParameterUse
from gradviz.render.terminal.cells import (
    make_console,
    name_text,
    print_heading,
    print_wrapped,
)
from gradviz.render.terminal.row_printer import print_rows
from gradviz.render.words.missing_gradient_text import missing_text
from gradviz.render.words.text import clean, count, shape

#: Maximum number of names listed beside the table.
_MAX_LISTED: Final = 20


def print_parameters(found: ParameterGradients, console: Console | None = None) -> None:
    """Print a heading, the rows, and the unusual facts."""
    console, rows = console or make_console(), found.rows
    without = found.num_rows - found.num_with_gradient
    told = f"{count(found.num_rows, 'parameter')}, {without:,} without a gradient"
    print_wrapped(console, told, "bold", "")
    if rows:
        has_ranks = any(one.ranks for one in rows)
        columns = ["parameter", "shape", "gradient", "used", "node", "why none"]
        if has_ranks:
            columns.insert(1, "ranks")
        has_norms = any(one.gradient_norm is not None for one in rows)
        if has_norms:
            columns.insert(columns.index("used"), "norm")
        cells = (_cells(one, has_ranks=has_ranks, has_norms=has_norms) for one in rows)
        print_rows(console, columns, cells)
    if left := found.num_rows - len(rows):
        print_wrapped(console, f"{left:,} more are not shown", "", "")
    if found.num_left_out:
        more = f"{found.num_left_out:,} more parameters were not looked at"
        print_wrapped(console, more, "", "")
    if found.differing:
        print_heading(console, "With a gradient on some ranks only")
        _list(found.differing, console)
    if found.strangers:
        print_heading(console, "Held by an optimizer, and part of no module that ran")
        _list([f"{name}: {text}" for name, text in found.strangers], console)


def _cells(one: ParameterUse, *, has_ranks: bool, has_norms: bool) -> list[str]:
    why = "" if one.missing is None else missing_text(one.missing)
    if why and one.num_other_passes:
        why += f"; {count(one.num_other_passes, 'other pass')} reached it"
    elif one.has_gradient and one.optimizers == ():
        why = "it has one, and no optimizer holds it"
    cells = [
        name_text(" = ".join(one.names)) if one.names else "(of no module)",
        "?" if one.shape is None else shape(one.shape),
        "yes" if one.has_gradient else "no",
        f"{one.num_uses:,}",
        "-" if one.number is None else f"#{one.number}",
        why or "-",
    ]
    if has_norms:
        norm = one.gradient_norm
        cells.insert(3, "-" if norm is None else f"{float(norm):.4g}")
    if has_ranks:
        cells.insert(1, ",".join(map(str, one.ranks)))
    return cells


def _list(texts: Sequence[str], console: Console) -> None:
    for text in texts[:_MAX_LISTED]:
        print_wrapped(console, clean(text), "", "  ")
    if len(texts) > _MAX_LISTED:
        more = f"and {len(texts) - _MAX_LISTED:,} more"
        print_wrapped(console, more, "", "  ")
