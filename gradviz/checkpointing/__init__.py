"""Computing parts of a forward a second time instead of keeping what they saved."""

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
