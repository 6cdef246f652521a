"""``gradviz check``."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click
import msgspec

from gradviz.analysis.advice import build_advice
from gradviz.analysis.check import Check, check_document, check_trace
from gradviz.analysis.passes import Pass
from gradviz.cli.options import json_option, trace_argument
from gradviz.cli.progress import working
from gradviz.cli.reading import find_trace, read_trace
from gradviz.cli.writing import print_json
from gradviz.errors import UserError
from gradviz.render.terminal import print_advice
from gradviz.render.text import clean, count, shorten
from gradviz.trace.losses import losses_in_words
from gradviz.trace.model import Trace

#: As diff(1) has it: nothing found, something found, could not look.
FOUND: Final = 1
TROUBLE: Final = 2

_MAX_ERROR: Final = 200


@click.command("check")
@trace_argument
@click.option(
    "--advice",
    "gives_advice",
    is_flag=True,
    help="Say, too, what would save time or memory; changes no exit code.",
)
@json_option
def command(trace_path: Path | None, gives_advice: bool, as_json: bool) -> int:
    """Look for what is wrong in a trace.

    That is a history that no backward pass can have, work on two streams that uses
    the same memory in no order, a pass that failed, and whatever is lost. Exits with 0
    if nothing is wrong, 1 if something is, 2 if there is nothing to look at or the
    trace cannot be read.

    Example:
        gradviz check first.gvt --json
    """
    try:
        trace = read_trace(find_trace(trace_path))
    except UserError as error:
        error.exit_code = TROUBLE
        raise
    with working("checking"):
        check = check_trace(trace)
    advice = build_advice(trace, check.streams) if gives_advice else None
    if as_json:
        document = check_document(check)
        if advice is not None:
            document["advice"] = msgspec.to_builtins(advice)
        print_json(document)
    else:
        for line in _lines(trace, check):
            click.echo(clean(line))
        if advice is not None:
            print_advice(advice)
    if check.is_fine:
        return 0
    return TROUBLE if check.is_empty and check.losses.is_complete else FOUND


def _lines(trace: Trace, check: Check) -> list[str]:
    lines = []
    if num := check.history.num_violations:
        lines.append(f"{count(num, 'event')} out of place:")
        lines += _first(check.violations, num)
    lines += str(check.streams).splitlines()
    if num := check.num_failed:
        lines.append(f"{count(num, 'backward pass')} did not end well:")
        lines += _first(map(_failure, check.failed), num)
    if num := check.num_doubts:
        lines.append(f"{count(num, 'thing')} unexplained:")
        lines += _first(check.doubts, num)
    if not check.losses.is_complete:
        lines.append("the trace is incomplete:")
        lines += _first(losses_in_words(check.losses), 0)
    if check.left_out:
        lines.append(f"left out on purpose: {'; '.join(check.left_out)}")
    if not check.judges_streams:
        lines.append("the order of work on streams cannot be known from the rest")
    if check.num_unseen:
        unseen = count(check.num_unseen, "event")
        lines.append(f"{unseen} were not looked at: that would take too long")
    if check.is_empty:
        lines.append("nothing to check: the trace holds no backward pass")
    if check.is_fine:
        lines.append(
            f"nothing is wrong: {count(trace.num_events, 'event')}, "
            f"{count(check.streams.num_kernels, 'kernel')} on streams"
        )
    return lines


def _first(found: Iterable[object], num: int) -> list[str]:
    """The first of what was found, and how many more there are of `num` in all."""
    told = [f"- {one}" for one in found]
    return [*told, *([f"- and {num - len(told)} more"] if len(told) < num else ())]


def _failure(one: Pass) -> str:
    if one.status == "unfinished":
        return f"pass {one.task} never ended"
    return f"pass {one.task} failed: {shorten(one.error, _MAX_ERROR)}"
