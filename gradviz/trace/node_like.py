"""What a trace reads of nodes, which are the engine's, PyTorch's or anybody's."""

from collections.abc import Sequence
from typing import Protocol


class MetadataLike(Protocol):
    """What a trace records of one input of a node."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the gradient."""

    @property
    def dtype(self) -> object:
        """Its dtype, of which the text is recorded."""

    @property
    def device(self) -> object:
        """Where it must be, of which the text is recorded."""


class EdgeLike(Protocol):
    """An edge to a node; `node` is None where no gradient flows."""

    @property
    def node(self) -> "NodeLike | None":
        """Which node."""

    @property
    def input_nr(self) -> int:
        """Which of its inputs."""


class NodeLike(Protocol):
    """What a trace records of a node. `engine.Node` satisfies it."""

    @property
    def id(self) -> int:
        """Unique in the process."""

    def name(self) -> str:
        """Such as ``MulBackward0``."""

    @property
    def sequence_nr(self) -> int:
        """How many nodes its thread had made before."""

    @property
    def topological_nr(self) -> int:
        """Length of the longest path to a leaf."""

    @property
    def next_edges(self) -> Sequence[EdgeLike]:
        """Where its gradients go."""

    @property
    def input_metadata(self) -> Sequence[MetadataLike | None]:
        """What each input expects, None for anything."""

    @property
    def runs_on(self) -> object:
        """Where it runs, of which the text is recorded."""

    @property
    def module_path(self) -> str:
        """The part of a model that made it, empty outside a model."""
