from collections.abc import Iterator

import pytest

from gradviz import sim
from gradviz.capture.session import record
from gradviz.trace.format.model import Trace
from tests.analysis.conftest import pair, story  # noqa: F401 - fixtures
from tests.analysis.moments.test_engine_state import PROGRAMS


@pytest.fixture(params=PROGRAMS, ids=lambda one: one.__name__)
def trace(request: pytest.FixtureRequest) -> Iterator[Trace]:
    """A pass that is plain, captured, nested, failed, or on two devices."""
    count = sim.device_count()
    sim.set_device_count(2)
    with record() as recording:
        request.param()
    yield recording.trace
    sim.set_device_count(count)
