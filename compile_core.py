"""Compiles the hot modules of gradviz: those beside which a ``.pxd`` lies.

    python compile_core.py [FOLDER]

leaves the compiled files in FOLDER/gradviz, beside their sources; `hatch_build.py` does
it for wheels. See docs/compiled-core.md and Note [All or none] in `gradviz.core`.
"""

import contextlib
import importlib.util
import os
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

#: What is generic to us is not to Cython: annotations are for people and type checkers.
DIRECTIVES: Final = {
    "language_level": 3,
    "annotation_typing": False,
    "auto_pickle": False,
    "binding": True,
}

#: Where each nanosecond counts.
HOTTEST: Final = ("engine/", "ops/", "ready_order")

#: What a ``.pxd`` may say above a class.
OF_CLASSES: Final = ("freelist", "no_gc")


def compile_core(root: Path, target: Path) -> list[Path]:
    """Compile all modules, or raise.

    Args:
        root: Where the folder ``gradviz`` lies.
        target: Where to write ``gradviz/....so`` and the stamp.

    Returns:
        What was written, below `target`.

    Raises:
        Exception: There is no Cython, no compiler, no ``Python.h``, or it fails.
    """
    from Cython.Build import cythonize  # noqa: PLC0415 - only where it is built
    from setuptools import Distribution, Extension  # noqa: PLC0415

    package = root / "gradviz"
    modules = sorted(
        path.relative_to(package).with_suffix("").as_posix()
        for path in package.rglob("*.pxd")
    )
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(root)  # names in tracebacks are those of the package
        try:
            with _directives_of_classes():
                extensions = cythonize(
                    [
                        Extension(
                            f"gradviz.{module.replace('/', '.')}",
                            [f"gradviz/{module}.py"],
                            extra_compile_args=_flags(module),
                        )
                        for module in modules
                    ],
                    build_dir=scratch,
                    compiler_directives=DIRECTIVES,
                    quiet=True,
                )
            command = Distribution({"ext_modules": extensions}).get_command_obj(
                "build_ext"
            )
            command.build_lib = str(target)
            command.build_temp = scratch
            command.parallel = os.cpu_count() or 1
            command.ensure_finalized()
            command.run()
            written = [Path(path) for path in command.get_outputs()]
        finally:
            os.chdir(here)
    missing = [path for path in written if not path.exists()]
    if missing:
        raise FileNotFoundError(f"the compiler has not written {missing[0]}")
    core = _core(package)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    stamp = target / "gradviz" / core.STAMP
    stamp.write_text(core.stamp(str(package), suffix, modules), encoding="utf-8")
    return [*written, stamp]


@contextlib.contextmanager
def _directives_of_classes() -> Iterator[None]:
    """Have Cython heed what a ``.pxd`` says above a class, which it forgets.

    It notes that when it reads the ``.pxd``, and when it comes to the class in the
    ``.py``, which has no such decorators, notes what stands there: nothing.
    """
    from Cython.Compiler.Nodes import CClassDefNode  # noqa: PLC0415 - as above

    analyse = CClassDefNode.analyse_declarations

    def analyse_and_keep(node: Any, env: Any) -> None:  # noqa: ANN401 - of Cython
        scope = getattr(
            getattr(env.lookup_here(node.class_name), "type", None), "scope", None
        )
        noted = getattr(scope, "directives", None) or {}
        kept = {name: noted[name] for name in OF_CLASSES if name in noted}
        analyse(node, env)
        if kept:
            node.scope.directives = {**node.scope.directives, **kept}

    CClassDefNode.analyse_declarations = analyse_and_keep
    try:
        yield
    finally:
        CClassDefNode.analyse_declarations = analyse


def _flags(module: str) -> list[str]:
    """Without debug symbols, which would be ten times as large as the code.

    What is less hot than the engine and the ops takes half as long to compile with
    `-O1`, and is some 3 % slower. Made small (`-Os`), all would be 20 % slower.
    """
    if sys.platform == "win32":
        return []
    return ["-O2" if module.startswith(HOTTEST) else "-O1", "-g0", "-w"]


def _core(package: Path) -> ModuleType:
    """The module `gradviz.core`, without what the package needs."""
    spec = importlib.util.spec_from_file_location("_core", package / "core.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    folder = Path(*sys.argv[1:2]).resolve()
    print(f"compiled {len(compile_core(folder, folder)) - 1} modules in {folder}")
