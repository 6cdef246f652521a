"""The warning for a leaf whose gradients come from another stream (C4)."""

import warnings

from gradviz.backends.stream import Stream
from gradviz.engine.graph import anomaly
from gradviz.engine.graph.node import Node

_is_enabled = True
_has_warned = False


def set_enabled(enabled: bool) -> None:
    """Set whether to warn, once; enabling it again allows one more warning.

    Source: torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch.
    """
    global _is_enabled, _has_warned
    _is_enabled, _has_warned = enabled, False


def warn_of(leaf: Node, stream: Stream, producer: Node | None, other: Stream) -> None:
    """Warn if a leaf's gradient comes from another stream of the leaf's device.

    A gradient from another device always comes on another stream, so that gets no
    warning.

    Args:
        leaf: The AccumulateGrad.
        stream: The stream of the leaf.
        producer: The node that made the gradient, None if the caller gave it.
        other: The stream of the producer.
    """
    global _has_warned
    if stream == other or stream.device is not other.device:
        return
    if not _is_enabled or _has_warned:
        return
    _has_warned = True
    made_at = anomaly.made_at(leaf)
    warnings.warn(
        f"The AccumulateGrad node's stream does not match the stream of the node that "
        f"produced the incoming gradient: {leaf!r} was made, and works, on {stream}, "
        f"and the gradient comes from {producer or 'the caller'} on {other}. One has "
        f"to wait for the other. "
        + (
            f"It was made here:\n{made_at}"
            if made_at
            else "To see where it was made, run the forward pass in "
            "gv.autograd.detect_anomaly(). "
        )
        + "A leaf's node is made when the leaf is first used, and lives as long as a "
        "graph that it is in: let go of older graphs (a loss that is kept, say), use "
        "the leaf on one stream only or, if this is what you want, call "
        "gv.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False).",
        UserWarning,
        stacklevel=2,
    )
