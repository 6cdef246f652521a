"""Fixtures for every test of a fault, with the checks after it."""

from collections.abc import Iterator

import pytest

from gradviz.engine import Engine
from tests.faults.scene import surviving_engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    yield from surviving_engine()
