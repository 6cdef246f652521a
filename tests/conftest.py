"""What holds for every test of gradviz."""

import contextlib
from collections.abc import Iterator

import hypothesis
import pytest

from gradviz import capture
from gradviz.capture import Recording
from gradviz.errors import TraceError
from gradviz.trace.lifecycle import check_lifecycle

# The same examples each time, and no limit that a busy machine could break.
hypothesis.settings.register_profile("gradviz", derandomize=True, deadline=None)
hypothesis.settings.load_profile("gradviz")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "breaks_lifecycle: records events in an impossible order on purpose"
    )


@pytest.fixture(autouse=True)
def every_trace_obeys_the_lifecycle(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test records, in memory or in a file, is a possible history.

    A test that records an impossible one on purpose says so by a marker.
    """
    closed: list[Recording] = []
    capture.after_close.append(closed.append)
    try:
        yield
    finally:
        capture.after_close.remove(closed.append)
    if request.node.get_closest_marker("breaks_lifecycle"):
        return
    violations: list[str] = []
    for recording in closed:
        with contextlib.suppress(TraceError):  # a file that the test has damaged since
            violations += map(str, check_lifecycle(recording.trace))
    assert not violations
