"""The programs of the pages run, and print what the pages say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, blocks, outputs

RUN = ("autograd.md", "how-the-engine-works.md", "library.md")

LETTERS = re.compile(r">([A-Za-z][\w ]*)<")


@pytest.mark.parametrize("name", RUN)
def test_a_page_prints_what_it_says(name: str):
    programs = blocks(DOCS / name)

    printed = outputs(DOCS / name)

    assert len(programs) == (DOCS / name).read_text().count("```python") > 6
    for program, output in zip(programs, printed, strict=True):
        assert (program.line, output) == (program.line, program.output)


def test_the_pictures_show_what_the_page_draws(tmp_path: Path):
    """Threads, nodes and titles; times differ from run to run."""
    subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.docs.pictures", str(tmp_path)],
        cwd=ROOT,
        timeout=60,
        check=True,
    )

    drawn = sorted(tmp_path.iterdir())
    assert len(drawn) == 3
    page = (DOCS / "how-the-engine-works.md").read_text()
    for picture in drawn:
        stored = DOCS / "images" / picture.name
        assert f"](images/{picture.name})" in page
        assert letters(picture) == letters(stored)


def test_what_the_readme_points_to_is_there():
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())

    assert [link for link in links if not (ROOT / link).exists()] == []


def letters(picture: Path) -> set[str]:
    """The texts of a picture that begin with a letter."""
    return set(LETTERS.findall(picture.read_text()))


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_what_a_page_points_to_is_there(page: Path):
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())

    assert [link for link in links if not (DOCS / link).exists()] == []
