"""What type checkers make of user code.

That the stubs are those of the sources is for `make lint` to say.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def mypy(page):
    """What mypy says about a page of user code."""
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(page)],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert checked.stdout, checked.stderr
    return checked.stdout


def test_right_code_has_the_types_that_a_user_expects():
    assert mypy(HERE / "right_code.py").startswith("Success")


def test_each_mistake_is_found():
    assert mypy(HERE / "wrong_code.py").startswith("Success")


def test_a_mistake_that_is_none_any_more_is_told(tmp_path):
    page = tmp_path / "page.py"
    page.write_text("import gradviz as gv\ngv.exp(gv.ones(2))  # type: ignore\n")
    assert "unused-ignore" in mypy(page)
