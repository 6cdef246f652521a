"""Which part of a model is running, for the nodes that are made meanwhile."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

#: Such as ``Model.encoder.0.linear``; empty outside of all models. Set by whoever runs
#: models.
MODULE_PATH: Final = ContextVar("gradviz.module_path", default="")

#: id of a module -> its path, for all modules of the model that runs; None outside.
MODULE_PATHS: Final[ContextVar[Mapping[int, str] | None]] = ContextVar(
    "gradviz.module_paths", default=None
)

#: A part of a model, as `here` returns it.
Place: TypeAlias = tuple[str, Mapping[int, str] | None]


def here() -> Place:
    """The part of a model that is running."""
    return MODULE_PATH.get(), MODULE_PATHS.get()


@contextmanager
def running(place: Place) -> Iterator[None]:
    """A block that counts as that part of its model: for what runs a second time."""
    outer = here()
    MODULE_PATH.set(place[0])
    MODULE_PATHS.set(place[1])
    try:
        yield
    finally:
        MODULE_PATH.set(outer[0])
        MODULE_PATHS.set(outer[1])
