"""Cases of which ordinary runs take a sample, and campaigns the rest."""

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], every: int) -> list[Any]:
    """Values of one parameter for `pytest.mark.parametrize`.

    Args:
        cases: All of them.
        every: The first and each so many after it are ordinary; `make stress` has the
            others.
    """
    return [
        pytest.param(one, marks=[pytest.mark.stress] if number % every else [])
        for number, one in enumerate(cases)
    ]
