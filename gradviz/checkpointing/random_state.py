"""Drawing the same random numbers in a second forward as in the first."""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager

from gradviz.ops.recording.generator import default_generator


def remembered(
    preserve: bool,
) -> Callable[[], AbstractContextManager[None]]:
    """Remember where the generator is now.

    Args:
        preserve: Whether to do anything at all.

    Returns:
        What makes a block in which the generator goes on from here; after it, the
        generator goes on from where it was before the block.
    """
    if not preserve:
        return contextlib.nullcontext
    state = default_generator.get_state()

    @contextlib.contextmanager
    def rewound():  # type: ignore[no-untyped-def]  # noqa: ANN202 - see the return type
        surrounding = default_generator.get_state()
        default_generator.set_state(state)
        try:
            yield
        finally:
            default_generator.set_state(surrounding)

    return rewound
