"""Fixtures for every test of gradviz."""

import contextlib
import gc
import importlib
import itertools
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

# Tests share the cores: threads of BLAS and of PyTorch would turn in circles, waiting
# for each other. It counts when NumPy is loaded, here and in programs started here.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import pytest

from gradviz.analysis.findings.check import check_trace
from gradviz.capture import session
from gradviz.capture.session import Recording
from gradviz.errors import TraceError
from gradviz.stream_check.checker import check_streams
from tests.analysis.ending import contradictions
from tests.hang_watch import HangWatch

# The same examples each time, and no limit that a busy machine could break.
hypothesis.settings.register_profile("gradviz", derandomize=True, deadline=None)
hypothesis.settings.load_profile("gradviz")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "hang_timeout", "seconds after which a test hangs; 0 is never", "float"
    )


def pytest_configure(config: pytest.Config) -> None:
    if timeout_s := config.getini("hang_timeout"):
        config.pluginmanager.register(HangWatch(timeout_s))
    # A job that a shell script has put into the background ignores Ctrl-C, and so would
    # all that it starts, whose Ctrl-C is what some tests are about.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers", "breaks_lifecycle: records events in an impossible order on purpose"
    )
    config.addinivalue_line(
        "markers", "another_order: its ready queues are not in PyTorch's order"
    )
    config.addinivalue_line(
        "markers", "races: uses memory from two streams in no order on purpose"
    )


def pytest_collection(session: pytest.Session) -> None:
    """Import all tests from the last to the first, in the second of two processes.

    pytest keeps what it makes of their asserts, which is half a minute of work. Where
    nothing is kept yet, two processes would do all of it at the same time. So they meet
    in the middle: either reads what the other has made.
    """
    is_all = session.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not is_all or os.environ.get("PYTEST_XDIST_WORKER") != "gw1":
        return
    for path in sorted(Path(__file__).parent.rglob("test_*.py"), reverse=True):
        words = path.relative_to(session.config.rootpath).with_suffix("").parts
        # What cannot be imported is reported when it is collected.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(words))


@pytest.hookimpl(trylast=True)  # once they are shuffled
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Campaigns of few tests come first, which take a minute each.

    At the end nobody waits for one of them then. Each of two processes begins with half
    of the tests, and takes from the other's end when it has none left: so short ones,
    of which there are thousands in a file, are last in both halves.
    """
    if config.getoption("markexpr") != "stress":
        return
    files: defaultdict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.path].append(item)
    largest = sorted(files.values(), key=len, reverse=True)
    halves = (reversed(largest[::2]), reversed(largest[1::2]))
    items[:] = itertools.chain.from_iterable(itertools.chain(*halves))


def pytest_collection_finish() -> None:
    forget_old_objects()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Iterator[None]:
    result = yield
    if nextitem is None or nextitem.path != item.path:
        forget_old_objects()
    return result


def forget_old_objects() -> None:
    """Collect garbage, and have later collections leave out all that is alive now.

    Tests and what they import are a million objects. Full collections would look
    through all of them, which took a sixth of the time of all tests.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def bytecode_for_children(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two hundred programs are started anew: what they import is compiled once for all.

    Where bytecode may not lie beside its source it lies in a folder of this run, and so
    can never be that of another state of the source.
    """
    if not sys.dont_write_bytecode:
        yield
        return
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # what all workers share
    with pytest.MonkeyPatch.context() as surroundings:
        surroundings.setenv("PYTHONPYCACHEPREFIX", str(folder / "bytecode"))
        surroundings.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        yield


@pytest.fixture(autouse=True)
def every_trace_is_sound(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check that every trace a test records, in memory or in a file, is possible.

    And its streams are in order, its queues were popped by priority, and it ends as its
    events add up to. A test that records anything else on purpose says so by a marker.
    """
    closed: list[Recording] = []
    session.after_close.append(closed.append)
    try:
        yield
    finally:
        session.after_close.remove(closed.append)
    wrong: list[str] = []
    for recording in closed:
        with contextlib.suppress(TraceError):  # a file that the test has damaged since
            trace = recording.trace
            check = check_trace(trace)
            if not request.node.get_closest_marker("breaks_lifecycle"):
                wrong += map(str, check.violations)
            if not request.node.get_closest_marker("races"):
                wrong += (str(race) for race, _ in check.streams.races)
            is_whole = trace.losses.is_complete and trace.header.scope.has_whole_passes
            if is_whole and not check.violations:
                order = not request.node.get_closest_marker("another_order")
                wrong += contradictions(trace, order=order)
    assert not wrong


@pytest.fixture
def streams_in_order() -> Iterator[None]:
    """For tests of programs on several streams: none of their waits is missing."""
    with check_streams():
        yield


@pytest.fixture
def devices_for_programs() -> Iterator[None]:
    """Provide the simulated devices that programs of `tests.integration` use."""
    from gradviz import sim
    from gradviz.autograd.graph import set_warn_on_accumulate_grad_stream_mismatch

    count = sim.device_count()
    sim.set_device_count(4)
    # The programs use leaves on several streams, which is right, and warned of once.
    set_warn_on_accumulate_grad_stream_mismatch(False)
    yield
    set_warn_on_accumulate_grad_stream_mismatch(True)
    sim.set_latency(None)
    sim.set_device_count(count)
