"""Compiles the hot modules of gradviz: those beside which a ``.pxd`` lies.

    python compile_core.py [FOLDER]

leaves the compiled files in FOLDER/gradviz, beside their sources; `hatch_build.py` does
it for wheels. See docs/compiled-core.md and Note [All or none] in `gradviz.core`.
"""

import importlib.util
import os
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Final

#: What is generic to us is not to Cython: annotations are for people and type checkers.
DIRECTIVES: Final = {
    "language_level": 3,
    "annotation_typing": False,
    "auto_pickle": False,
    "binding": True,
}

#: Where each nanosecond counts.
HOTTEST: Final = ("engine/", "ops/", "ready_order")


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
