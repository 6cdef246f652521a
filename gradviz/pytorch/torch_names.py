"""Names of PyTorch that are used, found once: many are not documented.

Nothing here imports torch: whoever watches it has it imported.
"""

import ctypes
import importlib
import re
import threading
from collections.abc import Callable, Iterable
from types import CodeType, ModuleType
from typing import Any, Final, NamedTuple

from gradviz.errors import UserError
from gradviz.pytorch.kineto_log import KinetoLog, level_of

#: The versions whose private names are known: the first, and the last that was tried.
#: A later one is watched if it has them all.
FIRST_VERSION: Final = (2, 6)
LAST_TRIED: Final = (2, 14)

#: `at::RecordFunction::currentThreadId()`, public in C++ and unknown to Python.
_THREAD_NUMBER: Final = "_ZN2at14RecordFunction15currentThreadIdEv"


class PyTorch(NamedTuple):
    """PyTorch, as far as it is used to watch its engine.

    Attributes:
        torch: The module.
        run_backward: Function that `torch.autograd.backward` and `grad` call.
        prepare: Prepares the profiler, before each `enable`: without it the process
            crashes.
        enable: Starts it.
        disable: Stops it, on any thread, and returns what it has seen.
        is_enabled: Test for a running profiler on this thread.
        log: Output of the profiler to stderr.
        config: Makes what `prepare` and `enable` are given, from other settings too.
        activities: Activities that the profiler watches: this machine's processor.
        scopes: Of that, functions of backwards, nothing else.
        user_scopes: Ranges that a program names, among which collectives are.
        user_scope: The number of their scope.
        is_distributed: Test for other ranks that this process has met.
        sees_all_threads: True if one profiler sees the functions of all threads.
        next_sequence_nr: The number of the node that this thread makes next.
        thread_number: The number of this thread that PyTorch keeps in nodes.
        knows_threads: True if `thread_number` is that; else it is one that no node has.
        current_node: The node that this thread evaluates, hooks included; else None.
        set_eval_frame: Sets what Dynamo has called for this thread's frames, None for
            nothing, and returns what was set before.
        skip_code: Has Dynamo leave frames with this code alone.
        is_compiling: Test for a `torch.compile` that is tracing the caller.
        of_modules: Module in which hooks for all modules are registered.
        of_optimizers: Module in which those for all optimizers are.
        of_profilers: Module in which a program finds PyTorch's profiler.
        of_hooks: Module in which the handles of hooks are made.
        of_stacks: Module in which PyTorch finds the function that makes the stacks of
            anomaly mode.
        no_overrides: Inside of this context no subclass of a tensor hears that its
            attributes are read.
        no_torch_functions: Inside of this one no mode for functions does either.
        no_dispatch: Inside of this one no mode for operators does.
    """

    torch: Any
    run_backward: Callable[..., Any]
    prepare: Callable[..., None]
    enable: Callable[..., None]
    disable: Callable[[], Any]
    is_enabled: Callable[[], bool]
    log: KinetoLog
    config: Callable[..., Any]
    activities: set[Any]
    scopes: set[Any]
    user_scopes: set[Any]
    user_scope: int
    is_distributed: Callable[[], bool]
    sees_all_threads: bool
    next_sequence_nr: Callable[[], int]
    thread_number: Callable[[], int]
    knows_threads: bool
    current_node: Callable[[], Any]
    set_eval_frame: Callable[[Any], Any]
    skip_code: Callable[[CodeType], None]
    is_compiling: Callable[[], bool]
    of_modules: Any
    of_optimizers: Any
    of_profilers: Any
    of_hooks: Any
    of_stacks: Any
    no_overrides: Callable[[], Any]
    no_torch_functions: Callable[[], Any]
    no_dispatch: Callable[[], Any]


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


def skip_code_of(of_frames: Any) -> Callable[[CodeType], None]:  # noqa: ANN401
    """Return the function that has Dynamo leave frames with some code alone.

    Args:
        of_frames: The module `torch._C._dynamo.eval_frame`.
    """
    if hasattr(of_frames, "skip_code"):  # before 2.7
        skip: Callable[[CodeType], None] = of_frames.skip_code
        return skip
    action = of_frames._FrameAction
    strategy = of_frames._FrameExecStrategy(action.SKIP, action.DEFAULT)
    set_strategy = of_frames.set_code_exec_strategy
    return lambda code: set_strategy(code, strategy)


def _find(torch: Any) -> PyTorch:  # noqa: ANN401 - a module without types of its own
    autograd, c = torch.autograd, torch._C
    of_profiler = c._profiler
    settings, sees_all = _settings(of_profiler._ExperimentalConfig)
    thread_number, knows_threads = _thread_number(c)

    def config(settings: Any = settings) -> Any:  # noqa: ANN401
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
        log=KinetoLog(level_of(torch)),
        config=config,
        activities={autograd.ProfilerActivity.CPU},
        scopes={of_profiler.RecordScope.BACKWARD_FUNCTION},
        user_scopes={of_profiler.RecordScope.USER_SCOPE},
        user_scope=int(of_profiler.RecordScope.USER_SCOPE.value),
        is_distributed=_is_distributed(torch),
        sees_all_threads=sees_all,
        next_sequence_nr=autograd._get_sequence_nr,
        thread_number=thread_number,
        knows_threads=knows_threads,
        current_node=c._current_autograd_node,
        set_eval_frame=c._dynamo.eval_frame.set_eval_frame,
        skip_code=skip_code_of(c._dynamo.eval_frame),
        is_compiling=_asked_at_once(torch.compiler.is_compiling),
        of_modules=torch.nn.modules.module,
        of_optimizers=importlib.import_module("torch.optim.optimizer"),
        of_profilers=importlib.import_module("torch.autograd.profiler"),
        of_hooks=importlib.import_module("torch.utils.hooks"),
        of_stacks=importlib.import_module("torch.fx.traceback"),
        no_overrides=c.DisableTorchFunctionSubclass,
        no_torch_functions=c.DisableTorchFunction,
        no_dispatch=c._DisableTorchDispatch,
    )


def _thread_number(c: Any) -> tuple[Callable[[], int], bool]:  # noqa: ANN401 - a module
    """Return a function that numbers the calling thread, and whether nodes do."""
    try:
        # It keeps the interpreter's lock: the function reads a variable.
        number = ctypes.PyDLL(c.__file__)[_THREAD_NUMBER]
    except (AttributeError, OSError, TypeError):  # another compiler named it
        return threading.get_ident, False
    number.restype, number.argtypes = ctypes.c_uint64, ()
    return number, True


def _is_distributed(torch: Any) -> Callable[[], bool]:  # noqa: ANN401 - a module
    """Return a test for the default process group."""
    if not torch.distributed.is_available():
        return lambda: False
    is_initialized: Callable[[], bool] = torch.distributed.is_initialized
    return is_initialized


def _asked_at_once(is_compiling: Callable[[], bool]) -> Callable[[], bool]:
    """Have Dynamo ask while it traces, and take the answer for a constant.

    What it traces counts as worth compiling if PyTorch's own function is called there.
    """

    def ask() -> bool:
        return is_compiling()

    ask._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return ask


def _settings(experimental: Callable[..., Any]) -> tuple[Any, bool]:
    """The profiler's settings, and whether they make it see all threads."""
    try:
        return experimental(profile_all_threads=True), True
    except TypeError:  # before 2.7
        return experimental(), False


def _dotted(version: Iterable[int]) -> str:
    return ".".join(map(str, version))
