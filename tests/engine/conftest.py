"""Fixtures for every test of the engine."""

from collections.abc import Iterator

import pytest

from gradviz.backends import base
from gradviz.backends.current_streams import on_streams
from gradviz.engine import Engine
from gradviz.trace import probe
from tests.backends.noted_device import Notebook
from tests.engine.accelerator import Array, Backend
from tests.engine.nodes import Listener


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine of the test's own, whose threads end with the test."""
    one = Engine()
    yield one
    one.stop()


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    """Provide the record of the devices ``noted:0`` and ``noted:1``."""
    notebook = Notebook()
    backend = Backend(notebook)
    monkeypatch.setitem(base._by_type, "noted", backend)
    monkeypatch.setitem(base._accelerators, "noted", backend)
    monkeypatch.setitem(base._by_array, Array, backend)
    with on_streams(()):  # a current stream of theirs is forgotten afterwards
        yield notebook


@pytest.fixture(params=[False, True], ids=["unheard", "listened"])
def _perhaps_listened(request: pytest.FixtureRequest) -> Iterator[None]:
    """The test runs twice: alone, and with a listener, which may change nothing."""
    if request.param:
        with probe.installed(Listener()):
            yield
    else:
        yield
