"""What a trace has lost, in words."""

from gradviz.trace.model import Losses


def losses_in_words(losses: Losses) -> list[str]:
    """What a trace has lost: a few words each."""
    told = [
        (losses.dropped, f"{losses.dropped:,} events were dropped while recording"),
        (
            losses.overwritten,
            f"its first {losses.overwritten:,} events were overwritten by later ones",
        ),
        (losses.damaged_bytes, f"{losses.damaged_bytes:,} bytes are damaged"),
        (
            losses.unknown_events,
            f"{losses.unknown_events:,} events are of no kind known here",
        ),
        (losses.truncated, "its end is cut off"),
        (not losses.closed, "it was never closed"),
    ]
    return [*(text for has, text in told if has), *losses.problems]
