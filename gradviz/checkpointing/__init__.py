"""Checkpointing: recomputing parts of a forward instead of saving their tensors.

In: a function and its inputs. Out: its outputs, and a frame in the graph that runs it
again. Read `checkpoint`, `frame`, `second_run`, then its options, `reentrant` and
`debugging`.
"""

from gradviz.checkpointing.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)
from gradviz.checkpointing.frame import CheckpointError, GraphExecGroup

__all__ = [
    "CheckpointError",
    "GraphExecGroup",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]
