"""The surroundings of a second run, made as they were in the first."""

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from gradviz.engine.graph.node import MODULE_PATH, MODULE_PATHS
from gradviz.modes import undoing
from gradviz.ops.conventions.generator import default_generator


def remembered(preserve_rng_state: bool) -> Callable[[], AbstractContextManager[None]]:
    """Remember which part of a model is running, and where the generator is.

    Args:
        preserve_rng_state: True if the state of the generator is remembered.

    Returns:
        A function that makes a block that counts as that part of the model, and in
        which the generator goes on from here; after it, all is as it was before the
        block.
    """
    module = MODULE_PATH.get(), MODULE_PATHS.get()
    state = default_generator.get_state() if preserve_rng_state else None

    @contextlib.contextmanager
    def as_then():  # type: ignore[no-untyped-def]  # noqa: ANN202 - see the return type
        undo = undoing(MODULE_PATH, MODULE_PATHS)
        surrounding_state = default_generator.get_state()
        try:
            _enter(*module)
            if state is not None:
                default_generator.set_state(state)
            yield
        finally:
            list(undo)  # one call, which no interrupt can come into
            if state is not None:
                default_generator.set_state(surrounding_state)

    return as_then


def _enter(path: str, paths: Mapping[int, str] | None) -> None:
    MODULE_PATH.set(path)
    MODULE_PATHS.set(paths)
