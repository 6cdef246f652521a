"""Protocols of nodes as a trace reads them: the engine's, PyTorch's or anybody's."""

from collections.abc import Sequence
from typing import Final, Protocol

#: A node that was read is a row of numbers and texts: the length of the row, then id,
#: sequence_nr, topological_nr, then name, device, module, names of its leaf and inputs,
#: which many nodes share: so many before its edges. Each of these is two more, the id
#: of a node and which input of that it is.
NUM_BEFORE_EDGES: Final = 9


class MetadataLike(Protocol):
    """Metadata of a node's input, as a trace records it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the gradient."""

    @property
    def dtype(self) -> object:
        """Its dtype, of which the text is recorded."""

    @property
    def device(self) -> object:
        """Expected device, recorded as text."""


class EdgeLike(Protocol):
    """An edge to a node; `node` is None where no gradient flows."""

    @property
    def node(self) -> "NodeLike | None":
        """The node that receives the gradient."""

    @property
    def input_nr(self) -> int:
        """Index of its input."""


class NodeLike(Protocol):
    """A node as a trace records it. `engine.Node` satisfies it."""

    @property
    def id(self) -> int:
        """Unique in the process."""

    def name(self) -> str:
        """Name, such as ``MulBackward0``."""

    @property
    def sequence_nr(self) -> int:
        """Number of nodes that its thread had made before."""

    @property
    def topological_nr(self) -> int:
        """Length of the longest path to a leaf."""

    @property
    def next_edges(self) -> Sequence[EdgeLike]:
        """Destinations of its gradients."""

    @property
    def input_metadata(self) -> Sequence[MetadataLike | None]:
        """Expected metadata of each input, None for any."""

    @property
    def runs_on(self) -> object:
        """The device that it runs on, recorded as text."""

    @property
    def module_path(self) -> str:
        """The part of a model that made it, empty outside a model."""
