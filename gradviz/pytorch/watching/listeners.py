"""Listeners to PyTorch, from its import until the last one stops."""

import sys

from gradviz.locks import SafeRLock
from gradviz.posix import at_fork
from gradviz.pytorch.compiler import Compiler
from gradviz.pytorch.torch_names import names_of
from gradviz.pytorch.watching.other_profilers import OtherProfilers
from gradviz.pytorch.watching.watcher import Watcher
from gradviz.trace.probe import Probe

_lock = SafeRLock()
_watcher: Watcher | None = None  # guarded by the lock, as is the next
#: Of each that watches, what it keeps of lines; see `Scope.stacks`.
_watching: list[str] = []
#: One entry for each that wants values checked. Guarded by the lock.
_checking: list[None] = []


def start(stacks: str = "leaf", *, checks_finite: bool = False) -> None:
    """Have PyTorch's passes reported; torch is imported by now.

    Args:
        stacks: Part that is kept of the lines that make nodes; see `Scope.stacks`.
            Where several watch, they get what the first of them asks for.
        checks_finite: True if values are to be checked for NaN and infinity.

    Raises:
        UserError: This PyTorch cannot be watched.
    """
    global _watcher
    with _lock:
        if not _watching:
            watcher = _watcher or _new_watcher()
            try:
                watcher.install(stacks)
            except BaseException:
                watcher.remove()
                raise
            _watcher = watcher
        _watching.append(stacks)
        if checks_finite:
            if not _checking and _watcher is not None:
                _watcher.begin_checks()
            _checking.append(None)


def _new_watcher() -> Watcher:
    names = names_of(sys.modules["torch"])
    compiler = Compiler(names)
    return Watcher(names, OtherProfilers(names.of_profilers, compiler), compiler)


def stop(*, checks_finite: bool = False) -> None:
    """Undo one `start` with the same `checks_finite`."""
    with _lock:
        if checks_finite:
            _checking.pop()
            if not _checking and _watcher is not None:
                _watcher.end_checks()
        _watching.pop()
        if not _watching and _watcher is not None:
            _watcher.remove()


def tell_kept(listener: Probe, *, always: bool) -> None:
    """Tell a listener which graphs the program keeps alive, step after step.

    Args:
        listener: The listener.
        always: Look for graphs that no pass ran too, which takes longer.
    """
    watcher = _watcher
    if watcher is not None:
        watcher.tell_kept(listener, always=always)


def _after_fork() -> None:
    """In the child of a fork: passes of other threads go on elsewhere, not here."""
    global _lock, _watcher
    _lock = SafeRLock()
    before = _watcher
    if before is None:
        return
    _watcher = before.renewed()
    if _watching:
        _watcher.install(_watching[0])
        if _checking:
            _watcher.begin_checks()


at_fork(after_in_child=_after_fork)
