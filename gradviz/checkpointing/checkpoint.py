"""Checkpointing, under PyTorch's names.

Source: torch/utils/checkpoint.py.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from gradviz.checkpointing.debugging import OpLogs
from gradviz.checkpointing.frame import CheckpointFrame, Metadata
from gradviz.checkpointing.reentrant import CheckpointFunction
from gradviz.checkpointing.second_run import remembered
from gradviz.engine.graph.grad_mode import is_grad_enabled
from gradviz.ops.variables.variable import Value, Variable

#: Makes the surroundings of the first run and those of the second.
ContextFn = Callable[
    [], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]
]


def noop_context_fn() -> tuple[
    AbstractContextManager[None], AbstractContextManager[None]
]:
    """Surroundings that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,  # noqa: ANN401 - what the user's function takes
    use_reentrant: bool | None = None,
    context_fn: ContextFn = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,  # noqa: ANN401 - likewise
) -> Any:  # noqa: ANN401 - what the user's function returns
    """Run a function without saving its tensors; the backward runs it again.

    Trades time for memory. The function must compute the same both times.

    Args:
        function: Function to run.
        *args: Arguments to run it with; kept.
        use_reentrant: False is recommended: the graph is recorded as ever, and only
            what it saves is computed again. True records nothing, and runs a backward
            inside the backward: of use only with a plain ``backward()``.
        context_fn: Makes the surroundings of both runs.
        determinism_check: ``"default"`` compares shapes, dtypes and devices of what
            both runs save, ``"none"`` nothing.
        debug: True if an error tells what both runs did.
        early_stop: True if the second run ends as soon as it has saved everything.
        **kwargs: Further arguments; and ``preserve_rng_state``, True by default: let
            the second run draw the same random numbers.

    Returns:
        The function's result.

    Raises:
        ValueError: Arguments that do not go together.
        CheckpointError: In the backward: the second run differed from the first.
        RuntimeError: In the backward: `use_reentrant` with ``grad`` or ``inputs=``.
    """
    if use_reentrant is None:
        _warn_of_default(
            "",
            "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will "
            "raise an exception.",
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        _refuse(kwargs)
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when "
                "use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    logs = None
    if debug if _debug is None else _debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        logs = OpLogs()
        context_fn = logs.contexts
    metadata = _metadata_of(determinism_check)
    surroundings, surroundings_again = context_fn()
    as_then = remembered(preserve)
    if not is_grad_enabled():
        return function(*args, **kwargs)

    def recompute(*args: object) -> None:
        with as_then(), surroundings_again:
            function(*args, **kwargs)

    frame = CheckpointFrame(
        recompute,
        args,
        early_stop=early_stop if _early_stop is None else _early_stop,
        metadata=metadata,
        explain=None if logs is None else logs.explain,
    )
    with frame.hooks(), surroundings:
        result = function(*args, **kwargs)
        frame.is_forward_done = True
    if not frame.is_forward_done:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn "
            "suppressed an exception raised during the checkpointed forward. This is "
            "not supported because checkpoint cannot return a value for a failed "
            "forward."
        )
    return result


def checkpoint_sequential(
    functions: Sequence[Callable[[Any], Any]],
    segments: int,
    input: Any,  # noqa: A002, ANN401 - PyTorch's name; whatever the first one takes
    use_reentrant: bool | None = None,
    **kwargs: Any,  # noqa: ANN401 - see there
) -> Any:  # noqa: ANN401 - what the last function returns
    """Run functions one after the other, in checkpointed segments but for the last.

    Args:
        functions: Functions to run; a `gradviz.nn.Sequential` will do.
        segments: Number of segments to make.
        input: Input of the first function.
        use_reentrant: As for `checkpoint`.
        **kwargs: ``preserve_rng_state``, as for `checkpoint`.

    Returns:
        The last function's result.

    Raises:
        ValueError: Another keyword.
    """
    if use_reentrant is None:
        _warn_of_default(
            ".checkpoint_sequential",
            "In version 2.9 we will raise an exception if use_reentrant is not passed.",
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    _refuse(kwargs)
    steps = list(functions.children() if hasattr(functions, "children") else functions)
    size = len(steps) // segments
    last = size * (segments - 1)
    value = input
    for start in range(0, last, size or 1):
        value = checkpoint(
            _in_sequence(steps[start : start + size]),
            value,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    return _in_sequence(steps[last:])(value)


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Decide for all checkpoints made in the block whether they stop early.

    Args:
        enable: True if they stop early.
    """
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Set whether errors of checkpoints made in the block have details.

    Args:
        enabled: True if they have details; None leaves it to the argument ``debug``.
    """
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


#: Setting of the two blocks above; None leaves it to the arguments.
_early_stop: bool | None = None
_debug: bool | None = None


def _shape_dtype_device(x: Variable) -> dict[str, object]:
    array = x.array
    return {"shape": array.shape, "dtype": array.dtype, "device": x.device}


_METADATA: Final[dict[str, Metadata | None]] = {
    "default": _shape_dtype_device,
    "none": None,
}


def _metadata_of(determinism_check: str) -> Metadata | None:
    if determinism_check not in _METADATA:
        raise ValueError(
            f"determinism_check should be one of {list(_METADATA)}, but got "
            f"{determinism_check}"
        )
    return _METADATA[determinism_check]


def _refuse(kwargs: dict[str, Any]) -> None:
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")


def _warn_of_default(where: str, what_will_be: str) -> None:
    warnings.warn(
        f"torch.utils.checkpoint{where}: the use_reentrant parameter should be passed "
        f"explicitly. {what_will_be} use_reentrant=False is recommended, but if you "
        f"need to preserve the current default behavior, you can pass "
        f"use_reentrant=True. Refer to docs for more details on the differences "
        f"between the two variants.",
        UserWarning,
        stacklevel=3,
    )


def _in_sequence(steps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(value: Value) -> Value:
        for step in steps:
            value = step(value)
        return value

    return run
