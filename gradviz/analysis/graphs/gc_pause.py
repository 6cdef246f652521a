"""Making very many values at once, without looking for garbage among them."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the search for cycles; also a decorator.

    For functions that make a hundred thousand values without a cycle: as they grow in
    number Python looks through them again and again, which takes as long as to make
    them. Garbage that other threads make meanwhile waits.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
