"""Pictures as files, in a browser."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gradviz.cli.main import gradviz
from tests.cli.under_limits import COMMANDS

pytestmark = pytest.mark.stress

PICTURES = [command for command in COMMANDS if command[0] == "render"]


@pytest.fixture(params=PICTURES, ids=" ".join)
def drawn(request, traces, tmp_path):
    """A picture of a hostile trace, and of its benign twin."""

    def draw(name: str) -> Path:
        words = [*request.param, str(traces[name])]
        done = CliRunner().invoke(gradviz, words)
        assert done.exit_code == 0, done.stderr
        is_page = done.stdout_bytes[:2] == b"<!"
        path = tmp_path / f"{name}.{'html' if is_page else 'svg'}"
        path.write_bytes(done.stdout_bytes)
        return path

    return draw


def test_no_text_of_a_trace_becomes_an_element(drawn, window):
    window.open(drawn("benign"))
    benign = window.elements()
    window.open(drawn("hostile"))

    assert window.elements() == benign
    assert window.run("return window.hacked") is None
    assert window.loaded() == []


def test_a_picture_begins_on_the_first_screen(drawn, window):
    window.open(drawn("benign"))

    seen = window.ink()
    assert seen.num_colors > 20
    assert seen.share > 0.01
    assert seen.left < 200
    assert seen.top < 200
    assert seen.right - seen.left > 200
    assert seen.bottom - seen.top > 100
