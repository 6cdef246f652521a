"""Pictures of graphs and recordings, for programs and notebooks.

What draws is loaded when something is drawn: programs import this with all the rest.
"""

import importlib
import os
from pathlib import Path
from typing import Any

from gradviz.analysis.graphs.backward_graph import Graph, build_graph
from gradviz.analysis.graphs.simplification import split_shared_leaves
from gradviz.analysis.tables.passes import Pass, passes, select_task
from gradviz.drawing.tensor_graph import (
    NamedTensors,
    nodes_of,
    tensor_graph,
    with_saved_tensors,
)
from gradviz.errors import UserError
from gradviz.ops.variables.variable import Variable
from gradviz.trace.format.atomic_file import write_whole
from gradviz.trace.format.model import Trace


class Picture:
    """A picture of a graph, which notebooks show.

    Attributes:
        graph: Graph that it shows, as plain values.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def digraph(self) -> Any:  # noqa: ANN401 - Graphviz is loaded when it is needed
        """The same as a `graphviz.Digraph`, to restyle it; each time a new one."""
        build_scene = importlib.import_module(
            "gradviz.render.graph.graph_scene"
        ).build_scene
        return importlib.import_module("gradviz.render.graph.dot").digraph(
            build_scene(self.graph)
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it to a file, and say where; one that is there is replaced.

        Args:
            path: Its suffix is the format: ``svg`` and ``dot`` need no tool, ``png``
                and ``pdf`` need Typst.

        Raises:
            MissingToolError: The format needs Typst, and that is not here.
            UserError: There is no such format, or the file cannot be written.
        """
        path = Path(path)
        rendering = importlib.import_module("gradviz.render.graph.graph_picture")
        format_ = path.suffix.lower().removeprefix(".")
        if format_ not in rendering.FORMATS:
            raise UserError(
                f"cannot tell the format of {str(path)!r}: expected "
                f".{' or .'.join(rendering.FORMATS)}"
            )
        data = rendering.render_graph(self.graph, format=format_).data
        try:
            write_whole(path, [data])
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None
        return path

    def _repr_svg_(self) -> str:
        rendering = importlib.import_module("gradviz.render.graph.graph_picture")
        return str(rendering.render_graph(self.graph).data, "utf-8")

    def __repr__(self) -> str:
        num = f"{self.graph.num_nodes:,} node{'s' * (self.graph.num_nodes != 1)}"
        return f"<Picture of {num}: .save('graph.svg') writes it to a file>"


class RecordedPass:
    """A backward pass of a recording, which notebooks show as its graph.

    Attributes:
        about: Facts of the pass: its id, its times and its outcome.
    """

    def __init__(self, trace: Trace, about: Pass) -> None:
        self.about = about
        self._trace = trace

    def graph(self, *, collapse: bool = True) -> Picture:
        """Its graph, as `draw` draws it."""
        return draw(self._trace, task=self.about.task, collapse=collapse)

    def _repr_svg_(self) -> str:
        return self.graph()._repr_svg_()

    def __repr__(self) -> str:
        return f"<Backward pass {self.about.task}: {self.about.status}>"


def recorded_passes(trace: Trace) -> tuple[RecordedPass, ...]:
    """The backward passes of a trace, in the order in which they began."""
    return tuple(RecordedPass(trace, one) for one in passes(trace))


def draw(
    outputs: object,
    params: NamedTensors = (),
    *,
    show_saved: bool = False,
    collapse: bool = True,
    task: str | int = "last",
) -> Picture:
    """Draw the graph of tensors before any backward, or that of a recorded pass.

    For example::

        gv.draw(loss)  # in a notebook
        gv.draw(loss, params=model.named_parameters()).save("loss.svg")

    Gradients flow along the arrows. The numbers are the order in which a backward would
    run the nodes, predicted by PyTorch's rules. Leaves of a model are called as it
    calls them, `params` or not.

    Args:
        outputs: A tensor, or lists, tuples and dicts of tensors; or a recording, or a
            trace; or the graph of PyTorch's tensors,
            `gradviz.pytorch.graph`.
        params: Names of leaves, as ``model.named_parameters()`` has them, or a dict.
        show_saved: Draw each tensor, too, that is saved for the backward. Neither a
            recording nor `gradviz.pytorch.graph` has them.
        collapse: Draw parts of models as boxes where the graph is big, as ``gradviz
            render graph`` does; their saved tensors are not drawn then.
        task: Pass of a recording to draw, as the option ``--pass`` has it.

    Raises:
        TypeError: `outputs` or `params` are something else.
        UserError: No output has a graph; or there is no such pass, or several are; or
            what is saved is asked for where it is not known.

    Source: torchviz.make_dot.
    """
    if isinstance(outputs, Graph):
        _refuse(show_saved)
        return Picture(_simplified(outputs, None, collapse))
    trace = outputs
    if not isinstance(outputs, Variable | Trace):
        trace = getattr(outputs, "trace", None)  # of a recording
    if isinstance(trace, Trace):
        _refuse(show_saved)
        tasks = select_task(trace, task)
        if len(tasks) > 1:
            raise UserError(
                f"a graph shows one pass, and {task!r} means {len(tasks):,} of them"
            )
        return Picture(_simplified(build_graph(trace, tasks[0]), trace, collapse))
    nodes = nodes_of(outputs)
    graph = _simplified(tensor_graph(nodes, params), None, collapse)
    return Picture(with_saved_tensors(graph, nodes) if show_saved else graph)


def _refuse(show_saved: bool) -> None:
    if show_saved:
        raise UserError(
            "show_saved=True draws what gradviz's own tensors have saved: a recording "
            "keeps no tensors, and to read those that PyTorch's nodes have saved would "
            "call the program's hooks that unpack them; leave it out"
        )


def _simplified(graph: Graph, trace: Trace | None, collapse: bool) -> Graph:
    detail = importlib.import_module("gradviz.render.graph.detail")
    simpler: Graph = (detail.automatic if collapse else detail.whole)(graph, trace)
    return split_shared_leaves(simpler)


def timeline_picture(trace: Trace) -> str:
    """Draw all threads in all passes of a trace, as SVG.

    Raises:
        UserError: There is no pass.
    """
    build = importlib.import_module(
        "gradviz.analysis.timelines.timeline_lanes"
    ).build_timeline
    with_modules = importlib.import_module(
        "gradviz.analysis.timelines.module_rows"
    ).with_module_rows
    render = importlib.import_module(
        "gradviz.render.timeline.timeline_svg"
    ).render_timeline
    timeline = with_modules(trace, build(trace, select_task(trace, "all")))
    return str(render(timeline), "utf-8")
