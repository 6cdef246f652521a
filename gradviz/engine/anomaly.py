"""Where a node was made, and whether it made a NaN: for debugging, at a price.

While the mode is on, every node remembers the stack of the operation that made it and,
if that ran inside a backward, the node whose evaluation did. A pass that fails then
says where its failing node came from, whatever the error was, and a NaN among the
gradients is an error.
"""

import sys
import traceback
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from gradviz.engine.protocols import Gradient, name_of

_PACKAGE: Final = str(Path(__file__).parent.parent)


class _Named(Protocol):
    @property
    def metadata(self) -> dict[str, Any]: ...

    def name(self) -> str: ...


class Anomaly(NamedTuple):
    """The mode, while it is on.

    Attributes:
        check_nan: Whether a NaN is an error.
    """

    check_nan: bool


#: Where a node keeps, in its metadata, the stack and the node that induced it.
STACK: Final = "traceback_"
PARENT: Final = "parent_"

#: The mode of the whole process, nothing while it is off. A list because each op asks,
#: and an attribute of a module takes eight times as long to read.
#: Source: torch/csrc/autograd/anomaly_mode.h, AnomalyMode.
SWITCHED_ON: Final[list[Anomaly]] = []

#: The node that is being evaluated in this context, while the mode is on.
EVALUATING: Final[ContextVar[_Named | None]] = ContextVar(
    "gradviz.evaluating", default=None
)


def switch(mode: Anomaly | None) -> Anomaly | None:
    """Turn the mode on or off for the whole process; returns what it was."""
    before = current()
    SWITCHED_ON[:] = () if mode is None else (mode,)
    return before


def current() -> Anomaly | None:
    """The mode, None while it is off."""
    for mode in SWITCHED_ON:  # at most one; another thread may switch it off now
        return mode
    return None


def remember(node: _Named) -> None:
    """Keep the stack of the user's program that makes `node` now.

    Source: torch/csrc/autograd/python_anomaly_mode.cpp, store_stack.
    """
    stack = [
        frame
        for frame in traceback.extract_stack()
        if not frame.filename.startswith(_PACKAGE)
    ]
    node.metadata[STACK] = traceback.format_list(stack)
    if (parent := EVALUATING.get()) is not None:
        node.metadata[PARENT] = parent


def made_at(node: _Named) -> str:
    """The stack of the user's program that made `node`; empty if nobody knows."""
    return "".join(node.metadata.get(STACK, ()))


def warn_of(node: _Named) -> None:
    """Say where a node that failed was made, and what induced that (K8, R1).

    Source: torch/csrc/autograd/python_anomaly_mode.cpp, print_stack.
    """
    texts = [
        f"Error detected in {name_of(node)}. "
        + _told("Traceback of forward call that caused the error", node)
    ]
    parent = node.metadata.get(PARENT)
    while parent is not None:
        texts.append(
            f"\n\nPrevious calculation was induced by {name_of(parent)}. "
            + _told(
                "Traceback of forward call that induced the previous calculation",
                parent,
            )
        )
        parent = parent.metadata.get(PARENT)
    for text in texts:
        try:
            warnings.warn(text, UserWarning, stacklevel=2)
        except UserWarning:  # a filter made an error of it; the pass has one already
            sys.stderr.write(f"{text}\n")


def _told(what: str, node: _Named) -> str:
    stack = node.metadata.get(STACK)
    if stack is None:
        return (
            "No forward pass information available. Enable detect anomaly during "
            "forward pass for more information."
        )
    return f"{what}:\n{''.join(stack)}"


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
                f"Function '{name_of(node)}' returned nan values in its {index}th "
                f"output."
            )
