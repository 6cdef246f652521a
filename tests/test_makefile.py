"""The makefile, the workflows and the site name things that exist, and miss none."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()

#: Steps of a workflow that bring what a machine lacks, and check nothing.
_SETUP = ("npm ci", "sudo apt-get ")


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE))


def paths_tested(part: str) -> list[str]:
    printed = subprocess.run(
        ["make", "-n", "-o", ".venv/.installed-dev", "test", f"PART={part}"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return re.findall(r"\btests/[\w.]+", printed)


def test_each_test_is_in_one_part():
    parts = re.findall(r"^PART_(\w+)", MAKEFILE, re.MULTILINE)
    named = Counter(path for part in parts for path in paths_tested(part))

    folders = {
        f"tests/{test.relative_to(ROOT / 'tests').parts[0]}"
        for test in ROOT.glob("tests/**/test_*.py")
    }
    assert named == Counter(folders)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_checks_by_make_targets_that_are_there(workflow: Path):
    steps = re.findall(r"- run: (.*)", workflow.read_text())
    checks = [step for step in steps if not step.startswith(_SETUP)]

    named = {step.split()[1] for step in checks if step.startswith("make ")}
    choices = set(re.findall(r"target: \[(.*)\]", workflow.read_text()))
    named.discard("${{")
    named.update(*(choice.split(", ") for choice in choices))
    assert checks
    assert all(step.startswith("make ") for step in checks)
    assert named <= targets()


def test_a_pull_request_runs_every_part():
    text = (ROOT / ".github" / "workflows" / "pull-request.yml").read_text()
    (parts,) = re.findall(r"part: \[(.*)\]", text)

    assert set(parts.split(", ")) == set(
        re.findall(r"^PART_(\w+)", MAKEFILE, re.MULTILINE)
    )


def test_every_page_is_on_the_site_once():
    nav = (ROOT / "mkdocs.yml").read_text().partition("nav:")[2]

    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert Counter(re.findall(r"\S+\.md", nav)) == Counter(pages)
