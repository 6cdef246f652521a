"""``torch.utils.checkpoint``; see `gradviz.checkpointing`."""

from gradviz.checkpointing import (
    CheckpointError,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)
from gradviz.checkpointing.reentrant import CheckpointFunction

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "GraphExecGroup",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]
