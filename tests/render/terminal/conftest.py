"""Consoles that write into memory."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from gradviz.render.terminal import make_console


@pytest.fixture
def shown() -> Callable[..., list[str]]:
    """What a view prints, line by line, on a console of some width."""

    def show(view: Callable[[Console], None], width: int = 80) -> list[str]:
        file = io.StringIO()
        view(make_console(file, width=width))
        return file.getvalue().splitlines()

    return show
