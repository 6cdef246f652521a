"""The compiled core is used whole, or not at all."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from gradviz import compiled_core

ROOT = Path(compiled_core.__file__).parents[1]
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
MODULES = ("engine/node", "ready_order")


class Package:
    """A package of two modules that were compiled, as far as names can tell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "gradviz"
        (self.folder / "engine").mkdir(parents=True)
        shutil.copy(compiled_core.__file__, self.folder)
        for module in MODULES:
            self.source(module).write_text(f"name = {module!r}\n")
            self.binary(module).write_bytes(b"no library at all")
        self.stamp(SUFFIX)

    def source(self, module: str) -> Path:
        return self.folder / f"{module}.py"

    def binary(self, module: str) -> Path:
        return self.folder / f"{module}{SUFFIX}"

    def stamp(self, suffix: str) -> None:
        told = compiled_core.stamp(str(self.folder), suffix, MODULES)
        (self.folder / compiled_core.STAMP).write_text(told)

    def why_pure(self) -> str:
        """Return the reason given by its own `compiled_core` when it is imported."""
        spec = importlib.util.spec_from_file_location(
            "_core", self.folder / "compiled_core.py"
        )
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.compiled == (not module.why_pure)
        return module.why_pure

    def found(self, module: str) -> str:
        """The file in which Python finds a module."""
        name = f"gradviz.{module.replace('/', '.')}"
        finder = sys.meta_path[0]
        return Path(finder.find_spec(name, None).origin).name


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.delenv(compiled_core.PURE, raising=False)
    return Package(tmp_path)


def test_a_complete_compiled_core_is_used(package):
    before = sys.meta_path[:]

    assert package.why_pure() == ""
    assert sys.meta_path == before


def test_an_uncompiled_package_searches_for_no_compiled_modules(package):
    (package.folder / compiled_core.STAMP).unlink()
    before = sys.meta_path[:]

    assert package.why_pure() == "nothing was compiled"
    assert sys.meta_path == before


def test_a_build_that_compiled_nothing_says_why(package):
    (package.folder / compiled_core.STAMP).unlink()
    (package.folder / compiled_core.PURE_BUILD).write_text("compiling failed: no gcc")

    assert package.why_pure() == "nothing was compiled: compiling failed: no gcc"


def test_a_source_tree_says_how_to_compile_it(package):
    (package.folder / compiled_core.STAMP).unlink()
    (package.folder.parent / "compile_core.py").touch()

    assert "'python compile_core.py' compiles" in package.why_pure()


def test_a_core_compiled_for_another_interpreter_is_not_used(package):
    package.stamp(".cpython-27-sparc-solaris.so")

    why = package.why_pure()
    assert why.startswith("nothing was compiled for this interpreter, but for .cpython")


@pytest.mark.parametrize("damage", ["a source is newer", "a file is gone"])
def test_of_other_sources_nothing_is_used_and_a_line_says_so(package, damage, capsys):
    if damage == "a file is gone":
        package.binary("engine/node").unlink()
    else:
        package.source("engine/node").write_text("name = 'another'\n")

    why = package.why_pure()

    assert why.startswith("what was compiled is not of the sources beside it")
    assert capsys.readouterr().err.count("\n") == 1
    assert [package.found(module) for module in MODULES] == [
        "node.py",
        "ready_order.py",
    ]
    assert sys.meta_path[0].find_spec("gradviz.errors") is None


def test_the_environment_can_ask_for_pure_python(package, monkeypatch, capsys):
    monkeypatch.setenv(compiled_core.PURE, "1")

    assert package.why_pure() == "GRADVIZ_PURE asks for it"
    assert package.found("engine/node") == "node.py"
    assert capsys.readouterr().err == ""


def test_a_stamp_that_is_none_harms_nothing(package):
    (package.folder / compiled_core.STAMP).write_text(f"{SUFFIX}\n\nno/such/module")

    assert package.why_pure() != ""


@pytest.mark.stress
class TestWheels:
    """Built as pip builds them: in an environment that pip makes."""

    @pytest.fixture
    def built(self, tmp_path):
        def build(**environment: str) -> tuple[Path, str]:
            done = subprocess.run(
                [sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "-v"],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": "", **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if "No matching distribution found" in done.stdout:
                pytest.skip("pip finds nothing to build with")
            assert done.returncode == 0, done.stdout
            (wheel,) = tmp_path.glob("*.whl")
            lines = map(str.strip, done.stdout.split("\n"))
            return wheel, next(line for line in lines if line.startswith("gradviz: "))

        return build

    @pytest.mark.parametrize(
        ("environment", "told"),
        [
            ({"CC": "/bin/false"}, "gradviz: pure Python, for compiling failed: "),
            ({"GRADVIZ_PURE": "1"}, "gradviz: pure Python, as GRADVIZ_PURE asks for"),
        ],
    )
    def test_without_a_compiler_or_wish_it_is_pure_python(
        self, built, environment, told
    ):
        wheel, said = built(**environment)

        assert said.startswith(told)
        assert wheel.name.endswith("-py3-none-any.whl")
        files = zipfile.ZipFile(wheel)
        assert not any(".so" in name for name in files.namelist())
        assert files.read(f"gradviz/{compiled_core.PURE_BUILD}")

    @pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
    def test_with_one_it_is_compiled_and_works(self, built, tmp_path):
        # Optimized, as the builds for all other tests are, it takes twice as long.
        quick = tmp_path / "cc"
        quick.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
        quick.chmod(0o755)
        wheel, said = built(CC=str(quick))
        clean = tmp_path / "clean"
        venv.create(clean, with_pip=False, system_site_packages=False)
        python = clean / "bin" / "python"
        packages = next(clean.glob("lib/python*/site-packages"))
        zipfile.ZipFile(wheel).extractall(packages)
        (packages / "here.pth").write_text(sysconfig.get_path("purelib"))
        program = (
            "import gradviz as gv; x = gv.ones(2, requires_grad=True);"
            "(x * x).sum().backward(); print(gv.compiled, x.grad.tolist())"
        )

        def run(**environment: str) -> str:
            return subprocess.run(
                [python, "-c", program],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": "", **environment},
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()

        assert said.endswith("modules compiled")
        assert run() == "True [2.0, 2.0]"
        assert run(GRADVIZ_PURE="1") == "False [2.0, 2.0]"
