import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0])
def test_the_python_of_the_readme_runs(block: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    expected = re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE)
    assert set(expected) <= set(done.stdout.splitlines())


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(README.parent / "examples")
    commands = re.findall(r"^\$ gradviz (.*)$", README.read_text(), re.MULTILINE)

    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "gradviz", *shlex.split(command)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)


def test_what_the_readme_points_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())

    missing = [link for link in links if not (README.parent / link).exists()]
    assert missing == []
