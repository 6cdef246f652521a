"""PyTorch's own backward passes, recorded as those of gradviz's engine are.

::

    with gv.pytorch.record("step.gvt") as recording:
        loss.backward()
    gv.draw(gv.pytorch.graph(loss)).save("loss.svg")

See docs/pytorch.md. What is private to PyTorch is used in this package only, and looked
up in `names` once.
"""

import functools
import importlib
import os
from typing import TYPE_CHECKING, Any

from gradviz.pytorch.drawing import graph as graph

if TYPE_CHECKING:
    from gradviz.capture import Recording

__all__ = ["graph", "record"]


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
    begin = functools.partial(importlib.import_module("gradviz.capture").record, path)
    recording: Recording = begin(source="torch", **options)
    return recording
