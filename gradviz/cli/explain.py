"""``gradviz explain``."""

from pathlib import Path

import click

from gradviz.analysis.addresses import find_node_of_workers
from gradviz.analysis.explanation import document_of, explain
from gradviz.analysis.passes import select_task
from gradviz.cli.completion import complete_node
from gradviz.cli.options import json_option, task_option
from gradviz.cli.reading import NODE_RUNS, check_recorded, find_trace, read_trace
from gradviz.cli.writing import show
from gradviz.render.terminal import print_explanation


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

    NODE is an id (27), a name (MulBackward0, or MulBackward0:3 for the fourth of that
    name that ran), the line that made it (model.py:12), a part of a model
    (Net.layers.0), or a parameter (Net.layers.0.weight, 0.weight), as far as that means
    one node of the pass, or of what another worker ran for it.

    Example:
        gradviz explain first.gvt SumBackward0
    """
    *path, address = words
    if len(path) > 1:
        raise click.UsageError(f"expected [TRACE] NODE, got {len(words)} words")
    trace = read_trace(find_trace(Path(path[0]) if path else None), needs=NODE_RUNS)
    tasks = select_task(trace, task)
    found = [find_node_of_workers(trace, one, address) for one in tasks]
    for owner, node in dict.fromkeys(found):
        check_recorded(trace, node)
        explanation = explain(trace, owner, node)
        show(
            explanation, as_json=as_json, document=document_of, table=print_explanation
        )
