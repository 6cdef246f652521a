"""Imports of each Python followed by ``gradviz run --follow-children``."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import gradviz.cli.run

FOLLOWED = Path(gradviz.cli.run.__file__).parent / "followed"


@pytest.fixture
def python(tmp_path):
    """Runs a program where ``sitecustomize`` is ours."""

    def run(program: str, **variables: str) -> str:
        paths = [str(FOLLOWED), str(tmp_path), os.environ.get("PYTHONPATH", "")]
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | variables,
            timeout=60,
            check=False,
        )
        assert done.stderr == ""
        return done.stdout

    return run


def test_a_process_that_imports_pytorch_records_itself(python, tmp_path):
    (tmp_path / "torch.py").write_text("")

    output = python(
        "import torch, sys\n"
        "print('gradviz.capture.session' in sys.modules, torch.__name__)",
        GRADVIZ_TRACE="x.gvt",
    )

    assert output == "True torch\n"
    assert (tmp_path / "x.gvt").exists()


def test_a_process_that_does_not_loads_nothing(python, tmp_path):
    output = python(
        "import sys, json; print([one for one in sys.modules if 'gradviz' in one])",
        GRADVIZ_TRACE="x.gvt",
    )

    assert output == "[]\n"
    assert not (tmp_path / "x.gvt").exists()


def test_a_sitecustomize_of_the_program_is_imported_too(python, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('the own one')")

    assert python("print('the program')") == "the own one\nthe program\n"


def test_without_pytorch_its_import_fails_as_it_does(python, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('broken')")

    program = """
    try:
        import torch
    except ImportError as error:
        print(error)
    """
    assert python(program) == "broken\n"
