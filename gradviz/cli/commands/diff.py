"""``gradviz diff``."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import click
import msgspec

from gradviz.analysis.changes.conditions import (
    CONDITIONS,
    Verdict,
    judge,
    parse_conditions,
)
from gradviz.analysis.changes.pass_comparison import (
    Comparison,
    compare,
    comparison_document,
)
from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.documents import show
from gradviz.cli.console.options import complete_task, complete_trace, json_option
from gradviz.cli.console.other_trace import one_pass, parts_of, read_compared
from gradviz.errors import UserError
from gradviz.render.terminal.comparison import print_comparison, print_verdicts
from gradviz.render.words.verdict_text import verdict_text
from gradviz.trace.format.model import Trace

#: As diff(1) has it: nothing differs, something does, could not look.
DIFFERENT: Final = 1
TROUBLE: Final = 2


@click.command("diff")
@click.argument(
    "names", metavar="A[:PASS] [B[:PASS]]", nargs=-1, shell_complete=complete_trace
)
@click.option(
    "--pass",
    "--task",  # its former name
    "task",
    metavar="N|N-M|last|slowest|failed|all",
    shell_complete=complete_task,
    help="Which pass of both, if no :PASS says it; two of one trace as 3,7. "
    "[default: last]",
)
@click.option(
    "--durations",
    "with_durations",
    is_flag=True,
    help="Also count significantly longer or shorter passes as a difference.",
)
@click.option(
    "--fail-on",
    "fail_on",
    multiple=True,
    metavar="CONDITION,...",
    help=f"Only what these name is a difference: {', '.join(CONDITIONS)}. memory, "
    "saved and time may grow by a limit, as in order,memory:5%,time:20%.",
)
@json_option
def command(
    names: tuple[str, ...],
    task: str | None,
    with_durations: bool,
    fail_on: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compare two backward passes, of two traces or of one.

    gradviz matches nodes by the structure of the graphs, not by their ids. Exits with 0
    if both are the same, 1 if something differs, 2 if they cannot be compared.

    With --fail-on it prints a line for each condition, and exits with 1 if one failed,
    2 if a trace lacks the data to decide. Time fails only beyond the noise of the
    passes.

    Example:
        gradviz diff first.gvt:slowest first.gvt:last
    """
    if fail_on and with_durations:
        raise click.UsageError("--fail-on has a condition for --durations: time")
    try:
        conditions = parse_conditions(fail_on)
        before, after = _sides(names, task)
        comparison = compare(before.trace, before.task, after.trace, after.task)
        verdicts = judge(conditions, comparison, before.trace, after.trace)
    except UserError as error:
        error.exit_code = TROUBLE
        raise
    show(
        comparison,
        as_json=as_json,
        document=lambda one: {**comparison_document(one), **_document(one, verdicts)},
        table=print_comparison,
    )
    if conditions:
        if not as_json:
            print_verdicts(verdicts, comparison.after)
        return _exit_code(verdicts)
    is_slow = with_durations and comparison.is_slower_or_faster
    return 0 if comparison.is_same and not is_slow else DIFFERENT


def _document(
    comparison: Comparison, verdicts: Sequence[Verdict]
) -> Mapping[str, object]:
    """Return what the JSON document tells of the verdicts; nothing without any."""
    if not verdicts:
        return {}
    return {
        "is_passed": _exit_code(verdicts) == 0,
        "verdicts": [
            {**msgspec.to_builtins(one), "text": verdict_text(one, comparison.after)}
            for one in verdicts
        ],
    }


def _exit_code(verdicts: Sequence[Verdict]) -> int:
    states = {one.state for one in verdicts}
    if "failed" in states:
        return DIFFERENT
    return TROUBLE if "unknown" in states else 0


class _ComparedSide(NamedTuple):
    """One of both passes."""

    trace: Trace
    task: int


def _sides(
    names: tuple[str, ...], task: str | None
) -> tuple[_ComparedSide, _ComparedSide]:
    if len(names) == 1 and task is not None:
        path, own = parts_of(names[0])
        if own is not None:
            raise click.UsageError("--pass and :PASS exclude each other: leave one out")
        trace = read_compared(path)
        two = select_task(trace, task)
        if len(two) != 2:
            raise click.UsageError(
                f"expected two passes of one trace, such as --pass 3,7; "
                f"{task!r} means {len(two):,}"
            )
        return _ComparedSide(trace, two[0]), _ComparedSide(trace, two[1])
    if len(names) != 2:
        raise click.UsageError(
            f"expected two traces, or one and two passes (--pass 3,7); got {len(names)}"
        )
    (path, own), (other_path, other) = map(parts_of, names)
    before = read_compared(path)
    after = before if other_path == path else read_compared(other_path)
    return (
        _ComparedSide(before, one_pass(before, own or task or "last")),
        _ComparedSide(after, one_pass(after, other or task or "last")),
    )
