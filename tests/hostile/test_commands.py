"""No command lets a text of a trace be anything but a text.

The commands are those of `tests.cli.under_limits`: whoever adds one there adds it here.
"""

import hashlib
import json
import re
import unicodedata
from base64 import b64encode
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradviz.cli.main import gradviz
from tests.cli.under_limits import COMMANDS
from tests.hostile.markup import Element, active_parts, structure

#: What sets colors and nothing else.
SGR = re.compile(r"\x1b\[[0-9;]*m")

#: What a page has of that.
DATA = Element("script", ("id", "type"))
PROGRAM = Element("script", ())

HARMFUL = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}

VIEWS = [command for command in COMMANDS if command[0] != "render"]
JSON = [command for command in VIEWS if "--json" in command]
PICTURES = [command for command in COMMANDS if command[0] == "render"]


def call(command: tuple[str, ...], path: Path, **variables: str) -> Result:
    """Run a command; the only errors allowed are the trace's own."""
    words = command if "TRACE" in command else (*command, "TRACE")
    words = [str(path) if word == "TRACE" else word for word in words]
    done = CliRunner().invoke(gradviz, words, env={"COLUMNS": "120"} | variables)
    assert done.exit_code in (0, 1, 2), done.stderr
    assert "internal error" not in done.stderr
    return done


def acting(text: str) -> set[str]:
    """The characters of a text that do something, but for line ends."""
    return {c for c in text if unicodedata.category(c) in HARMFUL} - {"\n"}


@pytest.mark.parametrize("command", VIEWS, ids=" ".join)
def test_a_terminal_gets_nothing_from_a_trace_that_acts(command, traces):
    done = call(command, traces["bare"])

    assert acting(done.stdout) == set()
    assert acting(done.stderr) == set()


@pytest.mark.parametrize("command", VIEWS, ids=" ".join)
def test_a_terminal_with_colors_gets_colors_and_nothing_else(command, traces):
    done = call(command, traces["bare"], FORCE_COLOR="1")

    assert acting(SGR.sub("", done.stdout)) == set()


@pytest.mark.parametrize("command", JSON, ids=" ".join)
def test_json_holds_what_its_twin_holds(command, traces):
    def keys(value: object) -> object:
        if isinstance(value, dict):
            return {key: keys(one) for key, one in value.items()}
        if isinstance(value, list):
            return [keys(one) for one in value]
        return type(value)

    hostile, benign = (
        [
            keys(json.loads(line))
            for line in call(command, traces[name]).stdout.splitlines()
        ]
        for name in ("hostile", "benign")
    )
    assert hostile == benign


@pytest.mark.parametrize("command", PICTURES, ids=" ".join)
def test_a_picture_has_the_structure_of_its_twin(command, traces):
    hostile, benign = (
        structure(call(command, traces[name]).stdout_bytes)
        for name in ("hostile", "benign")
    )

    assert hostile == benign


@pytest.mark.parametrize("command", PICTURES, ids=" ".join)
def test_a_picture_runs_and_loads_nothing(command, traces):
    markup = call(command, traces["bare"]).stdout_bytes

    own = [DATA, PROGRAM] if command[1] == "report" else []
    assert active_parts(markup) == own


def test_a_page_runs_its_own_program_only_and_asks_nobody(traces):
    page = call(("render", "report", "-o", "-"), traces["bare"]).stdout
    policy = re.search(r'Security-Policy" content="([^"]*)"', page)[1]

    rules = dict(one.split(" ", 1) for one in policy.split("; "))
    digest = hashlib.sha256(
        page.rpartition("<script>")[2].split("</script>")[0].encode()
    )
    assert rules["script-src"] == f"'sha256-{b64encode(digest.digest()).decode()}'"
    assert rules["default-src"] == rules["connect-src"] == "'none'"
    assert not re.search("http:|https:|unsafe|[*]", policy)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_texts_that_are_all_empty_are_no_error(command, traces):
    call(command, traces["empty"])
