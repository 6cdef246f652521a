import subprocess
import sys
import tempfile

import pytest

from gradviz.distributed.launching.meeting_folder import meeting_folder

PROGRAM = """
import sys
from gradviz.distributed.launching.meeting_folder import meeting_folder

with meeting_folder() as folder:
    (folder / "0").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_meeting_folder_is_gone_afterwards_and_nobody_else_may_open_it(temporary):
    with meeting_folder() as folder:
        assert folder.parent == temporary
        assert folder.stat().st_mode & 0o077 == 0
    with pytest.raises(KeyboardInterrupt), meeting_folder():
        raise KeyboardInterrupt
    assert not list(temporary.iterdir())


def test_the_next_one_removes_what_a_killed_process_has_left_and_nothing_else(
    temporary,
):
    strange = temporary / "gradviz-strange"
    strange.mkdir()
    with (
        meeting_folder() as ours,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as other,
    ):
        theirs = other.stdout.readline().strip()
        with meeting_folder() as third:
            found = {*map(str, temporary.iterdir())}
            assert found == {str(strange), str(ours), theirs, str(third)}
        other.kill()
        other.wait()
        with meeting_folder() as third:
            assert {*temporary.iterdir()} == {strange, ours, third}
