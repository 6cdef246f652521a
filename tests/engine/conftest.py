"""What every test of the engine starts from."""

from collections.abc import Iterator

import pytest

from gradviz.engine import Engine
from gradviz.trace import probe
from tests.engine.nodes import Listener


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine of the test's own, whose threads end with the test."""
    one = Engine()
    yield one
    one.stop()


@pytest.fixture(params=[False, True], ids=["unheard", "listened"])
def _perhaps_listened(request: pytest.FixtureRequest) -> Iterator[None]:
    """The test runs twice: alone, and with a listener, which may change nothing."""
    if request.param:
        with probe.installed(Listener()):
            yield
    else:
        yield
