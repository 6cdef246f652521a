"""Consoles that write into memory."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from gradviz.render.terminal.cells import make_console


@pytest.fixture
def shown() -> Callable[..., list[str]]:
    """Return a function that prints a view, line by line, at some width."""

    def show(view: Callable[[Console], None], width: int = 80) -> list[str]:
        file = io.StringIO()
        view(make_console(file, width=width))
        return file.getvalue().splitlines()

    return show
