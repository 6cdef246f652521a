"""``gradviz explain``."""

import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import click
import msgspec

from gradviz.analysis.moments.explanation import Explanation, document_of, explain
from gradviz.analysis.moments.pass_failures import PassFailure, explain_failure
from gradviz.analysis.nodes import parameters
from gradviz.analysis.nodes.addresses import (
    UnreachedParameterError,
    find_node_of_workers,
)
from gradviz.analysis.nodes.parameters import UnreachedParameter
from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.completion import complete_node
from gradviz.cli.console.documents import show
from gradviz.cli.console.options import json_option, task_option
from gradviz.cli.console.trace_argument import (
    NODE_RUNS,
    check_recorded,
    find_trace,
    read_trace,
)
from gradviz.render.terminal.explanation import (
    print_explanation,
    print_failure,
    print_unreached_parameter,
)
from gradviz.trace.format.model import Trace


@click.command("explain")
@click.argument(
    "words",
    metavar="[TRACE] NODE",
    nargs=-1,
    required=True,
    shell_complete=complete_node,
)
@task_option
@json_option
def command(words: tuple[str, ...], task: str, as_json: bool) -> None:
    """Say why a node ran when it did, or why it did not.

    NODE is an id (27), a number in the execution order (#5), a name (MulBackward0, or
    MulBackward0:3 for the fourth of that name that ran), the line that made it
    (model.py:12), a part of a model (Net.layers.0), or a parameter
    (Net.layers.0.weight, 0.weight). It must match one node of the pass, or of what
    another worker ran for it. If the pass did not reach a parameter, the command names
    the passes that did.

    Example:
        gradviz explain first.gvt SumBackward0
    """
    *path, address = words
    if len(path) > 1:
        raise click.UsageError(f"expected [TRACE] NODE, got {len(words)} words")
    if not path and _is_trace(address):
        raise click.UsageError(
            f"{address} is a trace: name a node of it too, such as "
            f"'gradviz explain {shlex.quote(address)} MulBackward0'; "
            f"'gradviz show order' lists them"
        )
    trace = read_trace(find_trace(Path(path[0]) if path else None), needs=NODE_RUNS)
    tasks = select_task(trace, task)
    for found in dict.fromkeys(_find(trace, one, address) for one in tasks):
        if isinstance(found, UnreachedParameter):
            show(
                found,
                trace,
                as_json=as_json,
                document=parameters.document_of,
                table=print_unreached_parameter,
            )
            continue
        owner, node = found
        check_recorded(trace, node)
        explanation = explain(trace, owner, node)
        failure = None
        if explanation.error:
            failure = explain_failure(trace, owner)
        show(
            explanation,
            trace,
            as_json=as_json,
            document=partial(_document, failure=failure),
            table=partial(_print, failure=failure),
        )


def _document(
    explanation: Explanation, failure: PassFailure | None
) -> Mapping[str, object]:
    told = {} if failure is None else {"failure": msgspec.to_builtins(failure)}
    return {**document_of(explanation), **told}


def _print(explanation: Explanation, failure: PassFailure | None) -> None:
    print_explanation(explanation)
    if failure is not None:
        print_failure(failure)


def _find(
    trace: Trace, task: int, address: str
) -> tuple[int, int] | UnreachedParameter:
    """Return the pass and node that an address means, or a parameter without a node."""
    try:
        return find_node_of_workers(trace, task, address)
    except UnreachedParameterError as error:
        return error.parameter


def _is_trace(word: str) -> bool:
    """Return whether a word names a trace, and no node."""
    return word.endswith(".gvt") and Path(word).is_file()
