"""The programs of the pages run, and print what the pages say; so do commands."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradviz.cli.main import gradviz
from tests.docs.pages import DOCS, ROOT, blocks, outputs
from tests.docs.pictures import PICTURES

RUN = (
    "autograd.md",
    "distributed.md",
    "how-the-engine-works.md",
    "library.md",
    "pictures.md",
    "streams.md",
    "stream-waits.md",
    "missing-waits.md",
    "backends.md",
    "testing.md",
)

#: What a reader of a page types, in a folder with the trace.
COMMAND = re.compile(r"^(?:\$ )?gradviz ((?:render|replay) .*)$", re.MULTILINE)

#: What a bar says of itself, if it is wide enough, and the legend of what is there.
LABEL = re.compile(r'<text class="(?:label|key)[^>]*>[^<]*</text>')

LETTERS = re.compile(r">([A-Za-z][\w ]*)<")


@pytest.mark.parametrize("name", RUN)
def test_a_page_prints_what_it_says(name: str):
    programs = blocks(DOCS / name)

    printed = outputs(DOCS / name)

    assert len(programs) == (DOCS / name).read_text().count("```python") > 0
    for program, output in zip(programs, printed, strict=True):
        assert (program.line, output) == (program.line, program.output)


@pytest.mark.parametrize(
    "name", ["page.md", "pictures.md", "pictures-over-time.md", "replay.md"]
)
def test_the_commands_of_a_page_run_one_after_the_other(name, tmp_path, monkeypatch):
    pytest.importorskip("typst", reason="png and pdf need it")
    monkeypatch.chdir(tmp_path)
    for trace in ("first.gvt", "training.gvt"):
        shutil.copy(DOCS / "traces" / "training.gvt", trace)
    commands = COMMAND.findall((DOCS / name).read_text(encoding="utf-8"))

    results = [CliRunner().invoke(gradviz, shlex.split(one)) for one in commands]

    assert results
    assert [one.stderr for one in results if one.exit_code] == []
    outputs = {
        words[words.index("-o") + 1]
        for words in map(shlex.split, commands)
        if "-o" in words
    }
    assert {path.name for path in tmp_path.iterdir()} == outputs | {
        "first.gvt",
        "training.gvt",
    }


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


def letters(picture: Path) -> set[str]:
    """The texts that begin with a letter, but for those that times decide."""
    return set(LETTERS.findall(LABEL.sub("", picture.read_text())))


def arrows(picture: Path) -> int:
    """Return the number of waits in a timeline."""
    return picture.read_text().count('class="await"')


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_links_of_a_page_point_to_existing_files(page: Path):
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())

    assert [link for link in links if not (DOCS / link).exists()] == []


#: Tables and lists that are looked things up in, and are not read through.
LOOKED_UP = {"ops.md"}


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_is_read_in_one_sitting(page: Path):
    assert len(page.read_text().split()) <= 2_500 or page.name in LOOKED_UP


def slug(heading: str) -> str:
    """The name of a heading in links to it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """The places of a page that a link can lead to."""
    prose = re.sub(
        r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE
    )
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {*map(slug, headings), *re.findall(r'<a id="([\w-]+)">', prose)}


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_the_sections_that_a_page_points_to_are_there(page: Path):
    links = re.findall(r"\]\(([\w-]*\.md|)#([\w-]+)\)", page.read_text())

    missing = [
        (name, anchor)
        for name, anchor in links
        if anchor not in anchors(DOCS / name if name else page)
    ]
    assert missing == []
