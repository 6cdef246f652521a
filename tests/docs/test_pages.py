"""The programs of the pages run, and print what the pages say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, blocks, outputs
from tests.docs.pictures import PICTURES

RUN = (
    "autograd.md",
    "how-the-engine-works.md",
    "library.md",
    "pictures.md",
    "streams.md",
    "testing.md",
)
#: What a bar says of itself if it is wide enough, and the legend of what is there.
#: What a bar says of itself, if it is wide enough.
LABEL = re.compile(r'<text class="(?:label|key)[^>]*>[^<]*</text>')

LETTERS = re.compile(r">([A-Za-z][\w ]*)<")


@pytest.mark.parametrize("name", RUN)
def test_a_page_prints_what_it_says(name: str):
    programs = blocks(DOCS / name)

    printed = outputs(DOCS / name)

    assert len(programs) == (DOCS / name).read_text().count("```python") > 2
    for program, output in zip(programs, printed, strict=True):
        assert (program.line, output) == (program.line, program.output)


def test_the_pictures_show_what_the_pages_draw(tmp_path: Path):
    """Threads, nodes and titles; times differ from run to run."""
    subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.docs.pictures", str(tmp_path)],
        cwd=ROOT,
        timeout=60,
        check=True,
    )

    assert len(list(tmp_path.iterdir())) == 10
    for name, drawn in PICTURES.items():
        page = (DOCS / name).read_text()
        for picture in drawn:
            stored, anew = DOCS / "images" / picture, tmp_path / picture
            assert f"](images/{picture})" in page
            assert letters(anew) == letters(stored)
            if picture != "streams-overlap.svg":  # some are before, or after, its pass
                assert arrows(anew) == arrows(stored)


def test_what_the_readme_points_to_is_there():
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())

    assert [link for link in links if not (ROOT / link).exists()] == []


def letters(picture: Path) -> set[str]:
    """The texts that begin with a letter, but for those that times decide."""
    return set(LETTERS.findall(LABEL.sub("", picture.read_text())))


def arrows(picture: Path) -> int:
    """How many waits a timeline has."""
    return picture.read_text().count('class="await"')


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_what_a_page_points_to_is_there(page: Path):
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())

    assert [link for link in links if not (DOCS / link).exists()] == []
