import subprocess
import sys

HANGS = """
import threading

def test_before(): pass
def test_waits(): threading.Event().wait()
def test_after(): pass
"""
RUN = """
import sys
import pytest
from tests.hang_watch import HangWatch

pytest.main(["-q", "-p", "no:randomly", sys.argv[1]], plugins=[HangWatch(0.2)])
"""


def test_a_test_that_hangs_ends_its_process_with_the_stacks_of_all_threads(tmp_path):
    tests = tmp_path / "test_hangs.py"
    tests.write_text(HANGS)

    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tests)],
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert "Timeout" in done.stderr
    assert "in test_waits" in done.stderr
    assert "test_after" not in done.stderr
