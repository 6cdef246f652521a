"""Where a node was made, and whether it made a NaN: for debugging, at a price.

While the mode is on, every node remembers the stack of the operation that made it and,
if that ran inside a backward, the node whose evaluation did. A pass that fails then
says where its failing node came from, whatever the error was, and a NaN among the
gradients is an error.
"""

import contextlib
import traceback
import warnings
import weakref
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from gradviz.engine.protocols import Gradient

_PACKAGE: Final = str(Path(__file__).parent.parent)


class _Named(Protocol):
    def name(self) -> str: ...


class Anomaly(NamedTuple):
    """The mode, while it is on.

    Attributes:
        check_nan: Whether a NaN is an error.
    """

    check_nan: bool


class _Origin(NamedTuple):
    stack: str
    induced_by: _Named | None


#: The mode of the whole process, None while it is off; replaced, never changed.
#: Source: torch/csrc/autograd/anomaly_mode.h, AnomalyMode.
current: Anomaly | None = None

#: The node that is being evaluated in this context, while the mode is on.
EVALUATING: Final[ContextVar[_Named | None]] = ContextVar(
    "gradviz.evaluating", default=None
)

_origins: "weakref.WeakKeyDictionary[_Named, _Origin]" = weakref.WeakKeyDictionary()


def switch(mode: Anomaly | None) -> Anomaly | None:
    """Turn the mode on or off for the whole process; returns what it was."""
    global current
    before, current = current, mode
    return before


def remember(node: _Named) -> None:
    """Keep the stack of the user's program that makes `node` now.

    Source: torch/csrc/autograd/python_anomaly_mode.cpp, store_stack.
    """
    stack = [
        frame
        for frame in traceback.extract_stack()
        if not frame.filename.startswith(_PACKAGE)
    ]
    text = "".join(traceback.format_list(stack))
    _origins[node] = _Origin(text, EVALUATING.get())


def warn_of(node: _Named) -> None:
    """Say where a node that failed was made, and what induced that (K8, R1).

    Source: torch/csrc/autograd/python_anomaly_mode.cpp, print_stack.
    """
    origin = _origins.get(node)
    texts = [
        f"Error detected in {node.name()}. "
        + (
            f"Traceback of forward call that caused the error:\n{origin.stack}"
            if origin
            else _NOT_KNOWN
        )
    ]
    while origin and (parent := origin.induced_by) is not None:
        origin = _origins.get(parent)
        texts.append(
            f"\n\nPrevious calculation was induced by {parent.name()}. "
            + (
                f"Traceback of forward call that induced the previous calculation:\n"
                f"{origin.stack}"
                if origin
                else _NOT_KNOWN
            )
        )
    with contextlib.suppress(Exception):  # a filter may turn warnings into errors
        for text in texts:
            warnings.warn(text, UserWarning, stacklevel=2)


_NOT_KNOWN: Final = (
    "No forward pass information available. Enable detect anomaly during forward pass "
    "for more information."
)


def check_nan(node: _Named, outputs: Sequence[Gradient]) -> None:
    """Raise if a gradient that `node` made has a NaN (E7).

    Asks the gradients themselves, for only a NaN differs from itself.

    Raises:
        RuntimeError: One has.
    """
    for index, output in enumerate(outputs):
        if output is None:
            continue
        differs = output != output  # noqa: PLR0124 - that is the test
        if bool(differs.any() if hasattr(differs, "any") else differs):
            raise RuntimeError(
                f"Function '{node.name()}' returned nan values in its {index}th output."
            )
