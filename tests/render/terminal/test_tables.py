import io

import pytest

from gradviz.render.terminal import make_console
from gradviz.render.terminal.tables import share


def test_a_console_that_is_no_terminal_writes_no_escapes(monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    file = io.StringIO()

    make_console(file).print("bold", style="bold red")

    assert file.getvalue() == "bold\n"


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (0, "             0%"),
        (0.5, "█████       50%"),
        (0.99, "█████████▉  99%"),
        (1, "██████████ 100%"),
        (7, "██████████ 700%"),
    ],
)
def test_a_share_is_a_bar_of_ten_columns(part, text):
    assert share(part).plain == text
