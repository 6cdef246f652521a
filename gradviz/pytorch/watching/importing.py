"""Watching PyTorch from when a program imports it, or at once if it has."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Final

from gradviz.errors import UserError
from gradviz.pytorch.error_origin import is_ours
from gradviz.pytorch.watching import listeners
from gradviz.trace.probe import Probe

_TORCH: Final = "torch"


class WhenImported:
    """Watches PyTorch once it is there, until it is closed.

    Attributes:
        problem: Reason why it cannot be watched, empty if it can or is not imported.

    Args:
        stacks: Part that is kept of the lines that make nodes; see `Scope.stacks`.
        checks_finite: True if values are to be checked for NaN and infinity.
    """

    def __init__(self, stacks: str = "leaf", *, checks_finite: bool = False) -> None:
        self.problem = ""
        self._stacks, self._checks_finite = stacks, checks_finite
        self._is_watching = self._is_closed = False
        self._finder = _Finder(self.begin)
        if is_imported():
            self.begin()
        else:
            sys.meta_path.insert(0, self._finder)

    def begin(self) -> None:
        """PyTorch has been imported, on this thread if it was just now."""
        if self._is_closed or self._is_watching:
            return
        try:
            listeners.start(self._stacks, checks_finite=self._checks_finite)
        except UserError as error:
            self.problem = str(error)
        except Exception as error:  # noqa: BLE001 - the program's import must not fail
            self.problem = f"gradviz failed to watch it: {error!r}"
        else:
            self._is_watching = True

    def tell_kept(self, listener: Probe, *, always: bool) -> None:
        """Tell a listener which graphs the program keeps; no failure reaches it."""
        if self._is_watching:
            try:
                listeners.tell_kept(listener, always=always)
            except Exception as error:
                if not is_ours(error):
                    raise  # an interrupt of the program's

    def close(self) -> None:
        """Watch no more; does nothing the second time."""
        self._is_closed = True
        self._finder.remove()
        if self._is_watching:
            self._is_watching = False
            listeners.stop(checks_finite=self._checks_finite)


def is_imported() -> bool:
    """Return whether PyTorch has been imported, to its end."""
    torch = sys.modules.get(_TORCH)
    spec = getattr(torch, "__spec__", None)
    return torch is not None and not getattr(spec, "_initializing", False)


class _Finder(importlib.abc.MetaPathFinder):
    """Finder of PyTorch with a loader that reports the end of the import."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        del path, target
        if fullname != _TORCH:
            return None
        self.remove()
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._then)
        return spec

    def remove(self) -> None:
        """Look no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


class _Loader(importlib.abc.Loader):
    """Loads as another loader does, leaves that in its place, and says so."""

    def __init__(self, loader: importlib.abc.Loader, then: Callable[[], None]) -> None:
        self._loader = loader
        self._then = then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """See `importlib.abc.Loader`."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """See `importlib.abc.Loader`."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._then()
