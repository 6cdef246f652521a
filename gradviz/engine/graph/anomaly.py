"""Anomaly mode: records where each node was made and checks for NaN, at a price.

While the mode is on, every node remembers the stack of the operation that made it and,
if that ran inside a backward, the node that was being evaluated. A failing pass then
says where its failing node came from, whatever the error was, and a NaN among the
gradients is an error.
"""

import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from gradviz.engine.graph.protocols import Gradient, name_of

_PACKAGE: Final = str(Path(__file__).parents[2])


class _Named(Protocol):
    @property
    def metadata(self) -> dict[str, Any]: ...

    def name(self) -> str: ...


class Anomaly(NamedTuple):
    """Settings of the mode, while it is on.

    Attributes:
        check_nan: True if a NaN is an error.
    """

    check_nan: bool


#: Keys of a node's metadata: its stack, and the node that induced it.
STACK: Final = "traceback_"
PARENT: Final = "parent_"

#: The mode of the whole process, empty while it is off. A list because every op checks
#: it, and reading a module's attribute takes eight times as long. Source:
#: torch/csrc/autograd/anomaly_mode.h, AnomalyMode.
SWITCHED_ON: Final[list[Anomaly]] = []

#: Called with the probe and the id of a pass, a node that has run, its gradients
#: received and made; on the thread that ran it, if there is a listener. Process-wide,
#: and a list for the same reason as `SWITCHED_ON`.
GRADIENT_CHECKS: Final[
    list[Callable[[Any, int, Any, Sequence[Gradient], Sequence[Gradient]], None]]
] = []

#: The node being evaluated in this context, while the mode is on.
EVALUATING: Final[ContextVar[_Named | None]] = ContextVar(
    "gradviz.evaluating", default=None
)


def switch(mode: Anomaly | None) -> Anomaly | None:
    """Turn the mode on or off for the whole process; return the previous mode."""
    before = current()
    SWITCHED_ON[:] = () if mode is None else (mode,)
    return before


def current() -> Anomaly | None:
    """Return the mode, None while it is off."""
    for mode in SWITCHED_ON:  # at most one; another thread may switch it off now
        return mode
    return None


def remember(node: _Named) -> None:
    """Save the stack of the user code that is making `node`.

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
    """Return the stack of the user code that made `node`; empty if unknown."""
    return "".join(node.metadata.get(STACK, ()))


def warn_of(node: _Named) -> None:
    """Warn with the place where a failed node was made, and what induced it (K8, R1).

    Source: torch/csrc/autograd/python_anomaly_mode.cpp, print_stack.
    """
    texts = [
        f"Error detected in {name_of(node)}. "
        + _stack_text("Traceback of forward call that caused the error", node)
    ]
    parent = node.metadata.get(PARENT)
    while parent is not None:
        texts.append(
            f"\n\nPrevious calculation was induced by {name_of(parent)}. "
            + _stack_text(
                "Traceback of forward call that induced the previous calculation",
                parent,
            )
        )
        parent = parent.metadata.get(PARENT)
    for text in texts:
        try:
            warnings.warn(text, UserWarning, stacklevel=2)
        except UserWarning:  # a filter made an error of it; the pass already has one
            sys.stderr.write(f"{text}\n")


def _stack_text(what: str, node: _Named) -> str:
    stack = node.metadata.get(STACK)
    if stack is None:
        return (
            "No forward pass information available. Enable detect anomaly during "
            "forward pass for more information."
        )
    return f"{what}:\n{''.join(stack)}"


def check_nan(node: _Named, outputs: Sequence[Gradient]) -> None:
    """Raise if a gradient that `node` made contains a NaN (E7).

    It asks the gradients themselves, because only a NaN differs from itself.

    Raises:
        RuntimeError: A gradient contains a NaN.
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
