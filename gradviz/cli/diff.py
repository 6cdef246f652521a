"""``gradviz diff``."""

import re
from pathlib import Path
from typing import Final

import click

from gradviz.analysis.comparison import Comparison, compare, comparison_document
from gradviz.analysis.passes import NoSuchPassError, select_task
from gradviz.cli.options import complete_task, complete_trace, json_option
from gradviz.cli.reading import NODE_RUNS, read_trace
from gradviz.cli.writing import show
from gradviz.errors import UserError
from gradviz.render.terminal import print_comparison
from gradviz.trace.model import Trace

#: As diff(1) has it: nothing differs, something does, could not look.
DIFFERENT: Final = 1
TROUBLE: Final = 2

#: What may follow a file, after a colon.
_TASK: Final = re.compile(r"(.+):(\d{1,19}|last|slowest|failed)", re.DOTALL)


@click.command("diff")
@click.argument(
    "names", metavar="A[:TASK] [B[:TASK]]", nargs=-1, shell_complete=complete_trace
)
@click.option(
    "--task",
    metavar="N|N-M|last|slowest|failed|all",
    shell_complete=complete_task,
    help="Which pass of both, if no :TASK says it; two of one trace as 3,7. "
    "[default: last]",
)
@click.option(
    "--durations",
    "with_durations",
    is_flag=True,
    help="A pass that takes significantly longer or shorter is a difference, too.",
)
@json_option
def command(
    names: tuple[str, ...], task: str | None, with_durations: bool, as_json: bool
) -> int:
    """Compare two backward passes, of two traces or of one.

    Nodes are matched by the structure of the graphs, whatever their ids are. Exits with
    0 if both are the same, 1 if something differs, 2 if they cannot be compared.

    Example:
        gradviz diff first.gvt:slowest first.gvt:last
    """
    try:
        comparison = _compared(names, task)
    except UserError as error:
        error.exit_code = TROUBLE
        raise
    show(
        comparison,
        as_json=as_json,
        document=comparison_document,
        table=print_comparison,
    )
    is_slow = with_durations and comparison.is_slower_or_faster
    return 0 if comparison.is_same and not is_slow else DIFFERENT


def _compared(names: tuple[str, ...], task: str | None) -> Comparison:
    if len(names) == 1 and task is not None:
        path, own = _parts(names[0])
        if own is not None:
            raise click.UsageError("--task and :TASK say the same twice: leave one")
        trace = _read(path)
        two = select_task(trace, task)
        if len(two) != 2:
            raise click.UsageError(
                f"expected two passes of one trace, such as --task 3,7; "
                f"{task!r} means {len(two):,}"
            )
        return compare(trace, two[0], trace, two[1])
    if len(names) != 2:
        raise click.UsageError(
            f"expected two traces, or one and two passes (--task 3,7); got {len(names)}"
        )
    (path, own), (other_path, other) = map(_parts, names)
    before = _read(path)
    after = before if other_path == path else _read(other_path)
    return compare(
        before,
        _one_pass(before, own or task or "last"),
        after,
        _one_pass(after, other or task or "last"),
    )


def _parts(name: str) -> tuple[Path, str | None]:
    """The file, and which pass of it; a file that is called so goes first."""
    found = _TASK.fullmatch(name)
    if found is None or Path(name).exists():
        return Path(name), None
    return Path(found[1]), found[2]


def _read(path: Path) -> Trace:
    return read_trace(path, needs=NODE_RUNS, all_nodes=True)


def _one_pass(trace: Trace, which: str) -> int:
    found = select_task(trace, which)
    if len(found) > 1:
        raise NoSuchPassError(
            f"{trace.path} has {len(found):,} passes {which!r}, expected one: say which"
        )
    return found[0]
