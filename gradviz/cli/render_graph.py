"""``gradviz render graph``."""

from pathlib import Path
from typing import Final, get_args

import click

from gradviz.analysis.graph import MAX_NODES, MAX_SIMPLIFIED, Graph, build_graph
from gradviz.analysis.nested_passes import NOT_DRAWN
from gradviz.analysis.passes import select_task
from gradviz.analysis.simplification import split_shared_leaves
from gradviz.cli.graph_options import (
    AskedDetail,
    AskedPart,
    graph_detail_options,
    graph_part_options,
)
from gradviz.cli.notes import note, note_next
from gradviz.cli.options import (
    force_option,
    open_option,
    output_option,
    quiet_option,
    task_option,
    trace_argument,
)
from gradviz.cli.progress import working
from gradviz.cli.reading import NODE_RUNS, find_trace, read_trace
from gradviz.cli.viewer import check_viewable, show_file
from gradviz.cli.writing import called, check_output, format_of, write_output
from gradviz.render.colouring import ColourBy
from gradviz.render.graph import FORMATS, LayoutEngine, render_graph
from gradviz.render.scene import size
from gradviz.render.text import count

LAID_OUT: Final = {"dot": " laid out by dot", "own": " laid out by gradviz", "none": ""}


@click.command("graph")
@trace_argument
@output_option("gradviz-graph-<trace>.svg")
@force_option
@task_option
@click.option(
    "--color",
    "colour_by",
    type=click.Choice(get_args(ColourBy)),
    default="auto",
    show_default=True,
    help="What the colours of nodes stand for.",
)
@click.option(
    "--engine",
    type=click.Choice(get_args(LayoutEngine)),
    default="auto",
    show_default=True,
    help="Who lays it out: Graphviz's dot, gradviz itself, or whoever suits.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="How long dot may take.",
)
@graph_part_options
@graph_detail_options
@open_option
@quiet_option
def command(  # noqa: PLR0913, PLR0917 - a command has the options it has
    trace_path: Path | None,
    output: Path | None,
    force: bool,
    task: str,
    colour_by: ColourBy,
    engine: LayoutEngine,
    timeout_s: float,
    part: AskedPart,
    detail: AskedDetail,
    is_opened: bool,
    quiet: bool,
) -> None:
    """Draw the graph of a backward pass, numbered in the order of execution.

    The suffix of FILE is the format: svg and dot need no tool, png and pdf need
    the extra pictures.

    Example:
        gradviz render graph -o first.svg --contract first.gvt
    """
    trace_path = find_trace(trace_path)
    output = output or Path(f"gradviz-graph-{trace_path.stem}.svg")
    format_ = format_of(output, FORMATS)
    check_viewable(output, is_opened=is_opened)
    check_output(output, force=force)
    trace = read_trace(trace_path, needs=NODE_RUNS)
    tasks = select_task(trace, task)
    if len(tasks) > 1:
        raise click.UsageError("a graph shows one backward pass: --task N, or last")
    most = MAX_NODES if detail.is_whole else MAX_SIMPLIFIED
    whole = build_graph(trace, tasks[0], most)
    asked = part.of(whole, trace)
    with working(f"laying out {size(asked)}"):
        graph = split_shared_leaves(detail.of(asked, trace))
        _tell_detail(asked, graph, detail)
        _tell_omitted(whole, asked, graph)
        drawn = render_graph(
            graph,
            format=format_,
            colour_by=colour_by,
            engine=engine,
            timeout_s=timeout_s,
            fit=detail.fit,
        )
    write_output(output, drawn.data)
    if not quiet:
        drew = f"drew {called(output)}: {size(graph)}"
        note(f"{drew}{LAID_OUT[drawn.engine]} ({drawn.note})")
        note_next("render timeline", trace_path)
    if is_opened:
        show_file(output)


def _tell_detail(asked: Graph, drawn: Graph, detail: AskedDetail) -> None:
    """Say what was done to a graph so that there is room for it."""
    new = [one for one in drawn.notes if one not in asked.notes]
    for missing in [one for one in new if one.endswith(NOT_DRAWN)]:
        note(f"{missing}: --task N draws one alone")
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
