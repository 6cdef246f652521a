"""``gradviz check``."""

from pathlib import Path
from typing import Final

import click

from gradviz.analysis.check import Check, check_document, check_trace
from gradviz.cli.options import json_option, trace_argument
from gradviz.cli.reading import find_trace, read_trace
from gradviz.cli.writing import print_json
from gradviz.errors import UserError
from gradviz.render.text import clean, count
from gradviz.trace.model import Trace

#: As diff(1) has it: nothing found, something found, could not look.
FOUND: Final = 1
TROUBLE: Final = 2

_MOST_VIOLATIONS: Final = 20


@click.command("check")
@trace_argument
@json_option
def command(trace_path: Path | None, as_json: bool) -> int:
    """Look for what is wrong in a trace.

    That is a history that no backward pass can have, and work on two streams that uses
    the same memory in no order. Exits with 0 if nothing is wrong, 1 if something is,
    2 if the trace cannot be read.
    """
    try:
        trace = read_trace(find_trace(trace_path))
    except UserError as error:
        error.exit_code = TROUBLE
        raise
    check = check_trace(trace)
    if as_json:
        print_json(check_document(check))
    else:
        for line in _lines(trace, check):
            click.echo(clean(line))
    return 0 if check.is_fine else FOUND


def _lines(trace: Trace, check: Check) -> list[str]:
    violations, streams = check
    lines = []
    if violations:
        lines.append(f"{count(len(violations), 'event')} out of place:")
        lines += [f"- {violation}" for violation in violations[:_MOST_VIOLATIONS]]
        if len(violations) > _MOST_VIOLATIONS:
            lines.append(f"- and {len(violations) - _MOST_VIOLATIONS} more")
    lines += str(streams).splitlines()
    if check.is_fine:
        lines.append(
            f"nothing is wrong: {count(trace.num_events, 'event')}, "
            f"{count(streams.num_kernels, 'kernel')} on streams"
        )
    return lines
