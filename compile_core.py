"""Compiles the hot modules of gradviz: those beside which a ``.pxd`` lies.

    python compile_core.py [FOLDER]

leaves the compiled files in FOLDER/gradviz, beside their sources; `hatch_build.py` does
it for wheels. See docs/compiled-core.md and Note [All or none] in
`gradviz.compiled_core`.
"""

import contextlib
import importlib.util
import os
import sys
import sysconfig
import tempfile
import threading
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
    # A typed variable that is None raises AttributeError, as it does in Python.
    "nonecheck": True,
}

#: What runs for every op and every node, where each nanosecond counts.
HOTTEST: Final = frozenset(
    {
        "engine/graph/node",
        "engine/graph/validation",
        "engine/tasks/discovery",
        "engine/threads/evaluation",
        "engine/threads/handover",
        "engine/threads/thread_main",
        "engine/threads/worker",
        "ops/dispatch/calling",
        "ops/dispatch/differentiable",
        "ops/dispatch/op_node",
        "ops/dispatch/plan",
        "ops/conventions/promotion",
        "ops/dispatch/result",
        "ops/conventions/silence",
        "ops/variables/variable",
        "ops/variables/version",
        "ready_order",
        "stream_check/lock_methods",
    }
)

#: What a ``.pxd`` may say above a class.
OF_CLASSES: Final = ("freelist",)

#: Holds for all classes: a chain of a million objects is freed in bounded depth.
OF_ALL_CLASSES: Final = {"trashcan": True}


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
    from setuptools import Distribution, Extension  # noqa: PLC0415 - only where it is built

    package = root / "gradviz"
    modules = sorted(
        path.relative_to(package).with_suffix("").as_posix()
        for path in package.rglob("*.pxd")
    )
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(root)  # names in tracebacks are those of the package
        try:
            command = _build_each()(
                Distribution(
                    {
                        "ext_modules": [
                            Extension(
                                f"gradviz.{module.replace('/', '.')}",
                                [f"gradviz/{module}.py"],
                                extra_compile_args=_flags(module),
                            )
                            for module in modules
                        ]
                    }
                )
            )
            command.build_lib = str(target)
            command.build_temp = scratch
            command.parallel = os.cpu_count() or 1
            command.ensure_finalized()
            with _directives_of_classes():
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


def _build_each() -> type[Any]:
    """Return the command that translates a module to C while others are compiled.

    Cython runs in one thread at a time, a C compiler in a process of its own. To
    translate all modules first would leave all cores but one idle meanwhile.
    """
    from Cython.Build import cythonize  # noqa: PLC0415 - as above
    from setuptools import Extension  # noqa: PLC0415 - as above
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415 - as above

    translating = threading.Lock()

    class BuildEach(build_ext):
        def build_extension(self, ext: Extension) -> None:
            with translating:
                (translated,) = cythonize(
                    [Extension(ext.name, ext.sources)],
                    build_dir=self.build_temp,
                    compiler_directives=DIRECTIVES,
                    quiet=True,
                )
            ext.sources = translated.sources
            super().build_extension(ext)

    return BuildEach


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
        node.scope.directives = {**node.scope.directives, **OF_ALL_CLASSES, **kept}

    CClassDefNode.analyse_declarations = analyse_and_keep
    try:
        yield
    finally:
        CClassDefNode.analyse_declarations = analyse


def _flags(module: str) -> list[str]:
    """Without debug symbols, which would be ten times as large as the code.

    What is less hot takes half as long to compile with `-O1`, and is some 3 % slower.
    Made small (`-Os`), all would be 20 % slower. What runs once, when a module is
    imported, is not optimized at all, and its strings are not compressed, which it
    would have to undo then.
    """
    if sys.platform == "win32":
        return []
    return [
        "-O2" if module in HOTTEST else "-O1",
        "-g0",
        "-w",
        '-DCYTHON_SMALL_CODE=__attribute__((cold, optimize("O0")))',
        "-DCYTHON_COMPRESS_STRINGS=0",
    ]


def _core(package: Path) -> ModuleType:
    """The module `gradviz.compiled_core`, without what the package needs."""
    spec = importlib.util.spec_from_file_location("_core", package / "compiled_core.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    folder = Path(*sys.argv[1:2]).resolve()
    print(f"compiled {len(compile_core(folder, folder)) - 1} modules in {folder}")
