"""Both runs of a checkpointed function, written down for the error if they differ."""

import contextlib
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple

from gradviz.autograd.graph import node_creation_hook
from gradviz.engine.graph.node import Node

_PACKAGE: Final = str(Path(__file__).parent.parent)

_EXPLANATION: Final = """\
An error happened while unpacking tensors; dumping logs of latest computation
because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.

1. Where the nodes of the original forward were made:

{first_stacks}

2. Where the nodes of the recomputation were made:

{second_stacks}

3. Operations executed during the original forward:

{first}

Operations executed during recomputation:

{second}

ERROR: Detected non-determinism while running activation checkpointing

You are seeing this error because you passed `debug=True` to checkpoint and tensors to
be saved during the original forward and differ between those saved during
recomputation. This can happen if different operators were ran in the original forward
and in the recomputation. Compare the lists above to see where they part.
"""


class _Op(NamedTuple):
    text: str
    stack: str


class OpLogs:
    """Listens to the nodes that both runs make."""

    def __init__(self) -> None:
        self._first: list[_Op] = []
        self._second: list[_Op] = []

    def contexts(
        self,
    ) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        """The surroundings of the first run and of the second."""
        return _listening(self._first), _listening(self._second)

    def explain(self) -> str:
        """Format the recorded ops."""
        return _EXPLANATION.format(
            first_stacks=_stacks(self._first, "original"),
            second_stacks=_stacks(self._second, "recompute"),
            first="\n".join(op.text for op in self._first),
            second="\n".join(op.text for op in self._second),
        )


@contextlib.contextmanager
def _listening(ops: list[_Op]) -> Iterator[None]:
    def note(node: Node) -> None:
        shapes = [list(one.shape) for one in node.input_metadata if one is not None]
        stack = [
            frame
            for frame in traceback.extract_stack()
            if not frame.filename.startswith(_PACKAGE)
        ]
        text = f"{type(node).name(node)} of shape {', '.join(map(str, shapes))}"
        ops.append(_Op(text, "".join(traceback.format_list(stack))))

    with node_creation_hook(note):
        yield


def _stacks(ops: Sequence[_Op], label: str) -> str:
    return "\n".join(
        f"{op.text}   ({number} of {len(ops)} in {label})\n\n{op.stack}"
        for number, op in enumerate(ops, 1)
    )
