"""See what a backward pass does, and why.

>>> import gradviz as gv
>>> x = gv.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])

Public names are defined in `gradviz.api` and loaded from there on first access, so that
``gradviz --help`` need not wait for NumPy.

To pytest, which loads a plugin of ours and might rewrite all: PYTEST_DONT_REWRITE
"""

import importlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

from gradviz import former_paths as _former_paths
from gradviz._version import __version__ as __version__
from gradviz.compiled_core import compiled as compiled

_former_paths.install()

if TYPE_CHECKING:
    from gradviz import accelerator as accelerator
    from gradviz import analysis as analysis
    from gradviz import autograd as autograd
    from gradviz import backends as backends
    from gradviz import cuda as cuda
    from gradviz import diagnostics as diagnostics
    from gradviz import distributed as distributed
    from gradviz import engine as engine
    from gradviz import linalg as linalg
    from gradviz import nn as nn
    from gradviz import optim as optim
    from gradviz import render as render
    from gradviz import sim as sim
    from gradviz import special as special
    from gradviz import trace as trace
    from gradviz import utils as utils
    from gradviz.api import *  # noqa: F403 - the list is there
else:  # a type checker must not assume that every name exists

    def __getattr__(name: str) -> Any:  # noqa: ANN401 - of any type
        if name in _PACKAGES:
            return importlib.import_module(f"gradviz.{name}")
        # `from gradviz import modes` asks here first, and must not load the api: the
        # import system finds a module that is not public by itself.
        if name[0] != "_" and importlib.util.find_spec(f"gradviz.{name}") is None:
            api = importlib.import_module("gradviz.api")
            if name in api.__all__:
                value = globals()[name] = getattr(api, name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


#: Public modules: a program may write ``gv.nn`` without importing it.
_PACKAGES = frozenset(
    [
        "accelerator",
        "analysis",
        "autograd",
        "backends",
        "checkpointing",
        "cuda",
        "diagnostics",
        "distributed",
        "engine",
        "linalg",
        "nn",
        "optim",
        "pytorch",
        "render",
        "sim",
        "special",
        "testing",
        "trace",
        "utils",
    ]
)


def load_ipython_extension(shell: Any) -> None:  # noqa: ANN401 - IPython is optional
    """Make the magic ``%%gradviz``; called by ``%load_ext gradviz``."""
    importlib.import_module("gradviz.cli.commands.notebook").register(shell)


def __dir__() -> list[str]:
    api = importlib.import_module("gradviz.api")
    return sorted({*globals(), *api.__all__})


# GRADVIZ_TRACE=1 (or a path) records an unmodified program. The command line itself is
# not such a program: there argv[0] is "gradviz", or "-m" at this point. Its name is
# found without pathlib, whose import takes a fifth of the time of this module's.
if os.environ.get("GRADVIZ_TRACE", "0") not in ("", "0"):
    _program = "".join(sys.argv[:1]).rpartition(os.sep)[2]
    if _program not in ("gradviz", "-m"):
        importlib.import_module("gradviz.capture.session").start_from_environment()
