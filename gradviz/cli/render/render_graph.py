"""``gradviz render graph``."""

from typing import Final

import click

from gradviz.analysis.graphs.backward_graph import (
    MAX_NODES,
    MAX_SIMPLIFIED,
    Graph,
    build_graph,
)
from gradviz.analysis.graphs.nested_passes import NOT_DRAWN
from gradviz.analysis.graphs.simplification import split_shared_leaves
from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.notes import note, working
from gradviz.cli.console.options import complete_trace
from gradviz.cli.render.graph_options import (
    AskedDetail,
    AskedLayout,
    AskedPart,
    graph_detail_options,
    graph_layout_options,
    graph_part_options,
)
from gradviz.cli.render.picture_command import (
    PictureFile,
    color_option,
    picture_command,
)
from gradviz.render.graph.coloring import ColorBy
from gradviz.render.graph.graph_picture import (
    FORMATS,
    Format,
    render_graph,
)
from gradviz.render.graph.graph_scene import size
from gradviz.render.words.text import count
from gradviz.trace.format.model import Trace

LAID_OUT: Final = {"dot": " laid out by dot", "own": " laid out by gradviz", "none": ""}


@picture_command(
    "graph",
    options=(
        color_option(ColorBy),
        graph_layout_options,
        graph_part_options,
        graph_detail_options,
        click.option(
            "--diff",
            "other",
            metavar="OTHER[:PASS]",
            shell_complete=complete_trace,
            help="Draw what differs from a pass of another trace, in one picture.",
        ),
    ),
    then="render timeline",
    formats=FORMATS,
)
def command(
    trace: Trace,
    format: Format,  # noqa: A002 - what it is called everywhere
    *,
    task: str,
    color_by: ColorBy,
    layout: AskedLayout,
    part: AskedPart,
    detail: AskedDetail,
    other: str | None,
) -> PictureFile:
    """Draw the graph of a backward pass, numbered in the order of execution.

    The suffix of FILE is the format: svg and dot need no tool, png and pdf need
    the extra pictures.

    Example:
        gradviz render graph -o first.svg --contract first.gvt
    """
    tasks = select_task(trace, task)
    if len(tasks) > 1:
        raise click.UsageError("a graph shows one backward pass: --pass N, or last")
    most = MAX_NODES if detail.is_whole else MAX_SIMPLIFIED
    whole = build_graph(trace, tasks[0], most)
    difference = None
    if other is not None:
        if color_by != "auto":
            raise click.UsageError("--color and --diff exclude each other")
        # Loaded where two passes are compared.
        from gradviz.cli.render.graph_difference import difference_of  # noqa: PLC0415

        difference = difference_of(whole, trace, task, other)
        whole = difference.union.graph
    asked = part.of(whole, trace)
    with working(f"laying out {size(asked)}"):
        graph = split_shared_leaves(detail.of(asked, trace))
        _tell_detail(asked, graph, detail)
        _tell_omitted(whole, asked, graph)
        drawn = render_graph(
            graph,
            format=format,
            color_by=color_by,
            engine=layout.engine,
            timeout_s=layout.timeout_s,
            fit=detail.fit,
            difference=difference,
        )
    return PictureFile(
        drawn.data, f"{size(graph)}{LAID_OUT[drawn.engine]} ({drawn.note})"
    )


def _tell_detail(asked: Graph, drawn: Graph, detail: AskedDetail) -> None:
    """Say what was done to a graph so that there is room for it."""
    new = [one for one in drawn.notes if one not in asked.notes]
    for missing in [one for one in new if one.endswith(NOT_DRAWN)]:
        note(f"{missing}: --pass N draws one alone")
        new.remove(missing)
    if detail.is_chosen:
        return
    done = ", ".join(new)
    if detail.fit:
        wide, high = detail.fit
        note(f"to fit {wide:,} x {high:,} pixels: {done or 'every node as it is'}")
    elif done:
        note(f"of a big graph an overview: {done}; --no-collapse draws every node")


def _tell_omitted(whole: Graph, asked: Graph, drawn: Graph) -> None:
    """Say what there was no room for: not what nobody asked for."""
    nodes = drawn.omitted - asked.omitted + whole.omitted
    edges = drawn.omitted_edges - asked.omitted_edges + whole.omitted_edges
    if nodes or edges:
        note(
            f"too much for one picture: {count(nodes, 'node')} and "
            f"{count(edges, 'edge')} are left out"
        )
