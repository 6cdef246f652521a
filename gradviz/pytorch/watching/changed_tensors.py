"""Tensors that a program changed in place after a node had saved them.

They are looked for when a pass has failed for that, and never else: PyTorch's error
says which version of which shape was changed, and the last node of a tensor still has
its line, see Note [Lines by anomaly mode] in `forward_lines`.
"""

import re
from typing import Final, NamedTuple

from gradviz.live_objects import instances_of
from gradviz.pytorch.nodes.graph_reader import line_of_node
from gradviz.pytorch.torch_names import PyTorch

#: Maximum number of changes told.
_MAX_CHANGES: Final = 3

#: Source: torch/csrc/autograd/saved_variable.cpp, SavedVariable::unpack.
_ERROR: Final = re.compile(
    r"\[(?P<type>[\w.]+) \[(?P<shape>[\d, ]*)\]\]"
    r"(?:, which is output \d+ of \w+,)? "
    r"is at version (?P<version>\d+); expected version \d+"
)


class ChangedTensor(NamedTuple):
    """A tensor: the node that made it, or changed it last, its line and number."""

    operation: str
    location: str
    sequence_nr: int


def find_changed(names: PyTorch, error: str) -> list[ChangedTensor]:
    """Return the tensors that an error may be about.

    Tensors that are gone, and those whose last change made no node, are not found.

    Args:
        names: Of PyTorch.
        error: The text of the error.
    """
    about = _ERROR.search(error)
    if about is None:
        return []
    shape = tuple(int(one) for one in about["shape"].split(",") if one.strip())
    found: dict[ChangedTensor, None] = {}
    with names.no_torch_functions():
        for one in instances_of(names.torch.Tensor):
            if tuple(one.shape) != shape or one.is_inference():
                continue
            if one._version != int(about["version"]) or one.type() != about["type"]:
                continue
            function = one.grad_fn
            line = "" if function is None else line_of_node(function)
            if line:
                number = function._sequence_nr()
                found[ChangedTensor(function.name(), line, number)] = None
    return list(found)[:_MAX_CHANGES]
