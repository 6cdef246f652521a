import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

from gradviz.distributed.messaging.entry import program_folder


@pytest.fixture
def main(tmp_path, monkeypatch):
    """The program, as tests want it, started in another folder than its own."""
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    monkeypatch.chdir(tmp_path)
    return module


def test_the_folder_of_a_program_is_that_of_its_file(main, tmp_path):
    main.__file__ = str(tmp_path / "there" / "program.py")

    assert program_folder() == tmp_path / "there"


def test_a_notebook_a_module_and_a_command_are_at_home_in_the_current_folder(
    main, tmp_path
):
    assert program_folder() == tmp_path
    main.__file__ = str(Path(sysconfig.get_path("scripts"), "pytest"))
    assert program_folder() == tmp_path
    main.__file__ = "/elsewhere/package/module.py"
    main.__spec__ = sys.modules["sys"].__spec__  # as python -m sets one
    assert program_folder() == tmp_path
