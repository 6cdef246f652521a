"""``gradviz render graph``."""

import re
from pathlib import Path
from typing import Final, get_args

import click

from gradviz.analysis import neighbourhood
from gradviz.analysis.addresses import find_node
from gradviz.analysis.critical_path import find_critical_path
from gradviz.analysis.graph import MAX_NODES, MAX_SIMPLIFIED, Graph, build_graph
from gradviz.analysis.modules import collapse_modules
from gradviz.analysis.overview import overview
from gradviz.analysis.passes import select_task
from gradviz.analysis.repetition import fold_repeats
from gradviz.analysis.simplification import (
    contract_chains,
    limit_nodes,
    split_shared_leaves,
)
from gradviz.cli.completion import complete_address
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
from gradviz.cli.writing import check_output, format_of, write_output
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
@click.option(
    "--depth",
    "--collapse",
    "depth",
    type=click.IntRange(min=0),
    metavar="DEPTH",
    help="Draw parts of models as boxes; 0: whole models, 1: their parts, 2: theirs.",
)
@click.option(
    "--fold",
    is_flag=True,
    help="Draw layers and time steps that repeat once, with how often.",
)
@click.option(
    "--contract",
    is_flag=True,
    help="Draw each chain of nodes without branches as one box.",
)
@click.option(
    "--no-collapse",
    "is_whole",
    is_flag=True,
    help="Draw every node, of however big a graph.",
)
@click.option(
    "--around",
    metavar="NODE",
    shell_complete=complete_address,
    help="Draw only a node and what is near it: MulBackward0:2, model.py:12, 27, ...",
)
@click.option(
    "--radius",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    metavar="K",
    help="How many edges away what is drawn --around a node may be.",
)
@click.option(
    "--between",
    nargs=2,
    metavar="NODE NODE",
    shell_complete=complete_address,
    help="Draw only what lies on a way from one node to another.",
)
@click.option(
    "--critical",
    "is_critical",
    is_flag=True,
    help="Mark the critical path, and say the slack of other nodes.",
)
@click.option(
    "--critical-only",
    "is_critical_only",
    is_flag=True,
    help="Draw only the nodes on the critical path.",
)
@click.option(
    "--limit",
    "--max-nodes",
    "max_nodes",
    type=click.IntRange(1, MAX_NODES),
    default=MAX_NODES,
    show_default=True,
    metavar="N",
    help="Draw no more than the first N nodes, or boxes of several.",
)
@click.option(
    "--fit",
    callback=lambda _context, _option, text: _pixels(text),
    metavar="WIDTHxHEIGHT",
    help="Scale a picture of more pixels, so that it is no larger: 1920x1080.",
)
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
    depth: int | None,
    fold: bool,
    contract: bool,
    is_whole: bool,
    around: str | None,
    radius: int,
    between: tuple[str, str] | None,
    is_critical: bool,
    is_critical_only: bool,
    max_nodes: int,
    fit: tuple[int, int] | None,
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
    graph = build_graph(trace, tasks[0], MAX_NODES if is_whole else MAX_SIMPLIFIED)
    whole = graph
    if is_critical or is_critical_only:
        path = find_critical_path(trace, tasks[0])
        graph = neighbourhood.mark_critical(graph, path)
    if around is not None:
        node = find_node(trace, tasks[0], around)
        graph = neighbourhood.around(graph, node, radius)
    if between:
        one, other = (find_node(trace, tasks[0], address) for address in between)
        graph = neighbourhood.between(graph, one, other)
    if is_critical_only:
        graph = neighbourhood.only_critical(graph)
    asked = graph.omitted - whole.omitted, graph.omitted_edges - whole.omitted_edges
    if is_whole or fold or contract or depth is not None:
        graph = fold_repeats(graph) if fold else graph
        graph = graph if depth is None else collapse_modules(graph, depth)
        graph = contract_chains(graph) if contract else graph
    else:
        graph = _overview(graph)
    graph = split_shared_leaves(_limited(graph, max_nodes, *asked))
    with working(f"laying out {size(graph)}"):
        drawn = render_graph(
            graph,
            format=format_,
            colour_by=colour_by,
            engine=engine,
            timeout_s=timeout_s,
            fit=fit,
        )
    write_output(output, drawn.data)
    if not quiet:
        note(f"drew {output}: {size(graph)}{LAID_OUT[drawn.engine]} ({drawn.note})")
        note_next("render timeline", trace_path)
    if is_opened:
        show_file(output)


def _pixels(text: str | None) -> tuple[int, int] | None:
    """The width and the height in ``1920x1080``."""
    if text is None:
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", text, re.ASCII)
    if found is None:
        raise click.BadParameter(
            f"expected a width and a height in pixels, as 1920x1080, got {text!r}"
        )
    return int(found[1]), int(found[2])


def _overview(graph: Graph) -> Graph:
    """An overview of a big graph, of which is said what was done for it."""
    simpler = overview(graph)
    done = ", ".join(one for one in simpler.notes if one not in graph.notes)
    if done:
        note(f"of a big graph an overview: {done}; --no-collapse draws every node")
    return simpler


def _limited(graph: Graph, max_nodes: int, nodes: int, edges: int) -> Graph:
    """What there is room for; so many nodes and edges were asked to be left out."""
    limited = limit_nodes(graph, max_nodes)
    nodes, edges = limited.omitted - nodes, limited.omitted_edges - edges
    if nodes or edges:
        note(
            f"too much for one picture: {count(nodes, 'node')} and "
            f"{count(edges, 'edge')} are left out"
        )
    return limited
