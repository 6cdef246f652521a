"""A table of backends, and choices of streams, that end with a test."""

from collections.abc import Iterator
from contextlib import contextmanager

from gradviz.backends import base, stream

TABLES = ("_by_type", "_by_array", "_accelerators", "_makers", "_stand_ins")


@contextmanager
def backends_as_they_were() -> Iterator[None]:
    """Forget the backends registered in the block after it, and their streams."""
    before = {name: getattr(base, name) for name in TABLES}
    for name, table in before.items():
        setattr(base, name, dict(table))
    # Set, not reset by a token: a fixture may end in another context than it began in.
    chosen = stream.CHOSEN.get()
    try:
        yield
    finally:
        stream.CHOSEN.set(chosen)
        for name, table in before.items():
            setattr(base, name, table)
