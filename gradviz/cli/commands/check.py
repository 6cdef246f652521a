"""``gradviz check``."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click
import msgspec

from gradviz.analysis.findings.advice import build_advice
from gradviz.analysis.findings.check import Check, check_document, check_trace
from gradviz.analysis.findings.unreached_parameters import UnreachedParameters
from gradviz.analysis.moments.pass_failures import PassFailure
from gradviz.analysis.tables.passes import Pass
from gradviz.analysis.tables.worker_parts import MAX_PARTS
from gradviz.cli.console.documents import print_json
from gradviz.cli.console.notes import working
from gradviz.cli.console.options import json_option, trace_argument
from gradviz.cli.console.trace_argument import find_trace, read_trace
from gradviz.errors import UserError
from gradviz.render.terminal.advice import print_advice
from gradviz.render.words.failure_text import failure_sentences
from gradviz.render.words.missing_gradient_text import missing_text
from gradviz.render.words.not_finite_text import not_finite_text
from gradviz.render.words.text import clean, count, shorten
from gradviz.trace.format.model import Trace

#: As diff(1) has it: nothing found, something found, could not look.
FOUND: Final = 1
TROUBLE: Final = 2

_MAX_ERROR: Final = 200
_MAX_NOT_FINITE: Final = 10


@click.command("check")
@trace_argument
@click.option(
    "--advice",
    "gives_advice",
    is_flag=True,
    help="Also say what would save time or memory. The exit code stays the same.",
)
@json_option
def command(trace_path: Path | None, gives_advice: bool, as_json: bool) -> int:
    """Look for what is wrong in a trace.

    It reports events in an order that no backward pass can have, work on two streams
    that uses the same memory in no order, a pass that failed, values that were not
    finite, and losses of the trace. Exits with 0 if nothing is wrong, 1 if something
    is, 2 if the trace cannot be read or has nothing to check.

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
            click.echo(clean(line), file=sys.stdout)
        if advice is not None:
            print_advice(advice)
    if check.is_fine:
        return 0
    return TROUBLE if check.is_empty and check.losses.is_complete else FOUND


def _lines(trace: Trace, check: Check) -> list[str]:
    lines = [*_wrong(check), *_unknown(check), *_parameters(check.parameters)]
    if check.is_empty:
        lines.append("nothing to check: the trace holds no backward pass")
    if check.is_fine:
        lines.append(
            f"nothing is wrong: {count(trace.num_events, 'event')}, "
            f"{count(check.streams.num_kernels, 'kernel')} on streams"
        )
    return lines


def _wrong(check: Check) -> Iterator[str]:
    """List the faults of the trace, and of the program that was recorded."""
    if num := check.history.num_violations:
        yield f"{count(num, 'event')} out of place:"
        yield from _first(check.violations, num)
    yield from str(check.streams).splitlines()
    if num := check.num_failed:
        yield f"{count(num, 'backward pass')} did not complete:"
        yield from _first(
            (
                " ".join([_failure(one), *_causes(check.failures.get(one.task))])
                for one in check.failed
            ),
            num,
        )
    if num := check.num_unexplained:
        yield f"{count(num, 'thing')} unexplained:"
        yield from _first(check.unexplained, num)
    if num := check.num_not_finite:
        yield f"{count(num, 'value')} not finite, the first ones first:"
        told = check.not_finite[:_MAX_NOT_FINITE]
        yield from _first(map(not_finite_text, told), num)
        if not check.checks_finite:
            yield "'gradviz run --check-finite' finds what made the first"
    if num := check.num_parts_apart:
        parts = count(num, "part")
        yield (
            f"{parts} of distributed passes counted as passes of their own: a pass has "
            f"at most {MAX_PARTS}"
        )


def _parameters(found: UnreachedParameters) -> Iterator[str]:
    """List the parameters that passes, or those of some ranks, did not reach."""
    if num := found.num_found:
        yield f"{count(num, 'parameter')} without a gradient in every pass:"
        yield from _first(
            (f"{one.name}: {missing_text(one.missing)}" for one in found.listed), num
        )
    if num := found.num_differing:
        yield f"{count(num, 'parameter')} with a gradient on some ranks only:"
        yield from _first(found.differing, num)


def _unknown(check: Check) -> Iterator[str]:
    """List the parts of the recording that are lost, left out or not looked at."""
    if not check.losses.is_complete:
        yield "the trace is incomplete:"
        yield from _first(check.losses.in_words(), 0)
    if check.left_out:
        yield f"left out on purpose: {'; '.join(check.left_out)}"
    if not check.judges_streams:
        yield "without them the order of work on streams is unknown"
    if check.num_unseen:
        unseen = count(check.num_unseen, "event")
        yield f"{unseen} were not checked: that would take too long"


def _first(found: Iterable[object], num: int) -> list[str]:
    """The first of what was found, and how many more there are of `num` in all."""
    told = [f"- {one}" for one in found]
    return [*told, *([f"- and {num - len(told)} more"] if len(told) < num else ())]


def _causes(failure: PassFailure | None) -> Iterator[str]:
    return iter(()) if failure is None else failure_sentences(failure)


def _failure(one: Pass) -> str:
    if one.status == "unfinished":
        return f"pass {one.task} never ended"
    return f"pass {one.task} failed: {shorten(one.error, _MAX_ERROR)}"
