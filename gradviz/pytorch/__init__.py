"""PyTorch's own backward passes, recorded as those of gradviz's engine are.

::

    with gv.pytorch.record("step.gvt") as recording:
        loss.backward()
    gv.draw(gv.pytorch.graph(loss)).save("loss.svg")

In: tensors of PyTorch, and its backward passes as they run. Out: the events that our
own engine reports. Read `torch_names`, `nodes`, `reconstruction`, `watching`. What is
private to PyTorch is used in this package only, and looked up in `torch_names` once.
See docs/pytorch-reference.md.
"""

import functools
import importlib
import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gradviz.capture.session import Recording
    from gradviz.pytorch.nodes.live_graphs import live_graphs as live_graphs
    from gradviz.pytorch.nodes.shown_graph import graph as graph

__all__ = ["graph", "live_graphs", "record"]

#: Modules of names that are loaded when they are asked for.
_MODULES: Final = {"graph": "shown_graph", "live_graphs": "live_graphs"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - of any type
    # Loaded when asked for: a recording of PyTorch's passes draws no graph.
    if name in _MODULES:
        module = importlib.import_module(f"gradviz.pytorch.nodes.{_MODULES[name]}")
        globals()[name] = getattr(module, name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def record(
    path: str | os.PathLike[str] | None = None,
    **options: Any,  # noqa: ANN401 - those of `gradviz.record`
) -> "Recording":
    """Record every backward of PyTorch's, and of ours, to the end of a ``with`` block.

    Args:
        path: A file to write; None keeps the recording in memory.
        options: Those of `gradviz.record`.

    Raises:
        UserError: As `gradviz.record` does; or there is no PyTorch that can be watched.
    """
    # Loaded when it is called: what joins engines and traces knows of this package.
    begin = functools.partial(
        importlib.import_module("gradviz.capture.session").record, path
    )
    recording: Recording = begin(source="torch", **options)
    return recording
