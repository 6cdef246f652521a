"""Found by each Python that ``gradviz run --follow-children`` is inside of.

A process that never imports gradviz, but PyTorch, begins to record when it does: the
variables of the environment say where. All others go on as if this were not here.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType


class _WhenTorchIsImported(importlib.abc.MetaPathFinder):
    """Imports gradviz before PyTorch, which records this process then."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        del path, target
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        try:
            importlib.import_module("gradviz")
        except ImportError:  # it is not installed for this Python
            return None
        return importlib.util.find_spec(fullname)


def _import_hidden() -> None:
    """Import the module of this name that Python would have found without this one."""
    here = Path(__file__).parent.resolve()
    rest = [one for one in sys.path if Path(one).resolve() != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


sys.meta_path.insert(0, _WhenTorchIsImported())
_import_hidden()
