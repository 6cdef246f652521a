"""What every test of a fault starts from, and what must hold after it."""

from collections.abc import Iterator

import pytest

from gradviz.engine import Engine
from tests.faults.scene import surviving_engine

#: No fault may make anything hang; a loaded machine is slow, not stuck.
TIMEOUT_SECONDS = 60


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/faults" in item.path.as_posix() and not item.get_closest_marker(
            "timeout"
        ):
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


@pytest.fixture
def engine() -> Iterator[Engine]:
    yield from surviving_engine()
