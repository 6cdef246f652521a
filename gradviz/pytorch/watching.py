"""Who watches PyTorch, from when it is imported to when nobody listens any more."""

import os
import sys
import threading

from gradviz.pytorch.names import names_of
from gradviz.pytorch.rivals import Rivals
from gradviz.pytorch.watcher import Watcher

_lock = threading.RLock()
_watcher: Watcher | None = None  # guarded by the lock, as is the next
_num_watching = 0


def start() -> None:
    """Have PyTorch's passes reported; torch is imported by now.

    Raises:
        UserError: This PyTorch cannot be watched.
    """
    global _watcher, _num_watching
    with _lock:
        if not _num_watching:
            watcher = _watcher or _new_watcher()
            try:
                watcher.install()
            except BaseException:
                watcher.remove()
                raise
            _watcher = watcher
        _num_watching += 1


def _new_watcher() -> Watcher:
    names = names_of(sys.modules["torch"])
    return Watcher(names, Rivals(names.of_profilers))


def stop() -> None:
    """Undo one `start`."""
    global _num_watching
    with _lock:
        _num_watching -= 1
        if not _num_watching and _watcher is not None:
            _watcher.remove()


def _after_fork() -> None:
    """In the child of a fork: passes of other threads go on elsewhere, not here."""
    global _lock, _watcher
    _lock = threading.RLock()
    before = _watcher
    if before is None:
        return
    _watcher = before.renewed()
    if _num_watching:
        _watcher.install()


os.register_at_fork(after_in_child=_after_fork)
