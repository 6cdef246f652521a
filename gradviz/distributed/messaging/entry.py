"""A function of a program, found again in another process."""

import importlib
import os
import sys
import sysconfig
from collections.abc import Callable
from multiprocessing.spawn import import_main_path
from pathlib import Path
from typing import Any


def module_of(function: Callable[..., Any]) -> str:
    """Return the module or file in which other processes find a function.

    Raises:
        ValueError: They cannot.
    """
    name = getattr(function, "__qualname__", "")
    module = sys.modules.get(getattr(function, "__module__", ""))
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if module is None or found is not function:
        raise ValueError(
            f"{name or function!r} cannot be found by other processes: put it at the "
            f"top level of a module"
        )
    if module.__name__ != "__main__":
        return module.__name__
    if module.__spec__ is not None:
        return module.__spec__.name
    path = getattr(module, "__file__", None)
    if path is None:
        raise ValueError(
            f"{name} cannot be found by other processes: write it into a file"
        )
    return str(Path(path).resolve())


def program_folder() -> Path:
    """Return the folder of the program: the first on Python's import path.

    That of its file; the current one, of a notebook, of ``python -m``, and of a command
    that is installed, such as ``pytest``.
    """
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or main.__spec__ is not None:
        return Path.cwd()
    folder = Path(path).resolve().parent
    commands = Path(sysconfig.get_path("scripts")).resolve()
    return Path.cwd() if folder == commands else folder


def function_in(module: str, name: str) -> Callable[..., object]:
    """Return a function of a module that `module_of` has named."""
    if os.sep in module:
        import_main_path(module)
        found: Any = sys.modules["__main__"]
    else:
        found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    function: Callable[..., object] = found
    return function
