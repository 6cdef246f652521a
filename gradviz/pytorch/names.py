"""What is used of PyTorch, found once: much of it is not documented.

Nothing here imports torch: whoever watches it has it imported.
"""

import importlib
import re
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final, NamedTuple

from gradviz.errors import UserError

#: The versions whose private names are known: the first, and the last that was tried.
#: A later one is watched if it has them all.
FIRST_VERSION: Final = (2, 6)
LAST_TRIED: Final = (2, 14)


class PyTorch(NamedTuple):
    """PyTorch, as far as it is used to watch its engine.

    Attributes:
        torch: The module.
        run_backward: What `torch.autograd.backward` and `grad` call.
        prepare: Prepares the profiler, before each `enable`: without it the process
            crashes.
        enable: Starts it.
        disable: Stops it, on any thread, and returns what it has seen.
        is_enabled: Whether a profiler runs on this thread.
        config: Makes what `prepare` and `enable` are given.
        activities: What the profiler watches: this machine's processor.
        scopes: Of that, functions of backwards, nothing else.
        sees_all_threads: Whether one profiler sees the functions of all threads.
        next_sequence_nr: The number of the node that this thread makes next.
        is_compiling: Whether `torch.compile` is tracing the caller.
        of_modules: Where hooks for all modules are registered.
        of_optimizers: Where those for all optimizers are.
        of_profilers: Where a program finds PyTorch's profiler.
        no_overrides: Inside of this context no subclass of a tensor hears that its
            attributes are read.
    """

    torch: Any
    run_backward: Callable[..., Any]
    prepare: Callable[..., None]
    enable: Callable[..., None]
    disable: Callable[[], Any]
    is_enabled: Callable[[], bool]
    config: Callable[[], Any]
    activities: set[Any]
    scopes: set[Any]
    sees_all_threads: bool
    next_sequence_nr: Callable[[], int]
    is_compiling: Callable[[], bool]
    of_modules: Any
    of_optimizers: Any
    of_profilers: Any
    no_overrides: Callable[[], Any]


def names_of(torch: ModuleType) -> PyTorch:
    """Find all that is used.

    Raises:
        UserError: This version is too old, or has other names.
    """
    version = str(getattr(torch, "__version__", "?"))
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < FIRST_VERSION:
        raise UserError(
            f"cannot watch the backward passes of PyTorch {version}: expected "
            f"{_dotted(FIRST_VERSION)} or newer"
        )
    try:
        return _find(torch)
    except (AttributeError, ImportError, TypeError) as error:
        raise UserError(
            f"cannot watch the backward passes of PyTorch {version}, which lacks what "
            f"{_dotted(LAST_TRIED)} has: {error}"
        ) from None


def _find(torch: Any) -> PyTorch:  # noqa: ANN401 - a module without types of its own
    autograd, c = torch.autograd, torch._C
    of_profiler = c._profiler
    settings, sees_all = _settings(of_profiler._ExperimentalConfig)

    def config() -> Any:  # noqa: ANN401
        options = (False,) * 5  # no shapes, memory, stacks, flops, modules
        kineto = autograd.ProfilerState.KINETO
        return autograd.ProfilerConfig(kineto, *options, settings)

    return PyTorch(
        torch=torch,
        run_backward=autograd.graph._engine_run_backward,
        prepare=autograd._prepare_profiler,
        enable=autograd._enable_profiler,
        disable=autograd._disable_profiler,
        is_enabled=autograd._profiler_enabled,
        config=config,
        activities={autograd.ProfilerActivity.CPU},
        scopes={of_profiler.RecordScope.BACKWARD_FUNCTION},
        sees_all_threads=sees_all,
        next_sequence_nr=autograd._get_sequence_nr,
        is_compiling=torch.compiler.is_compiling,
        of_modules=torch.nn.modules.module,
        of_optimizers=importlib.import_module("torch.optim.optimizer"),
        of_profilers=importlib.import_module("torch.autograd.profiler"),
        no_overrides=c.DisableTorchFunctionSubclass,
    )


def _settings(experimental: Callable[..., Any]) -> tuple[Any, bool]:
    """The profiler's settings, and whether they make it see all threads."""
    try:
        return experimental(profile_all_threads=True), True
    except TypeError:  # before 2.7
        return experimental(), False


def _dotted(version: Iterable[int]) -> str:
    return ".".join(map(str, version))
