"""Backends of other packages: a distribution is put on the path, as pip would.

The backend is the one that docs/backends.md shows.
"""

import sys

import pytest

import gradviz as gv
from gradviz.backends import base
from gradviz.backends.device import Device
from gradviz.backends.protocols import Accelerator, Backend
from tests.backends.isolation import backends_as_they_were
from tests.docs.pages import DOCS, blocks

(TOY,) = [
    block.source
    for block in blocks(DOCS / "backends.md")
    if "class ToyBackend" in block.source
]

#: The same devices without streams.
PLAIN = """

class PlainArray(ToyArray):
    pass


class Plain:
    type = "plain"
    array_types = (PlainArray,)

    def __init__(self):
        self._toy = ToyBackend()
        self.device_count = self._toy.device_count
        self.is_initialized = self._toy.is_initialized
        self.device_of = self._toy.device_of
        self.to_host = self._toy.to_host

    def from_host(self, array, device, *, non_blocking=False):
        return PlainArray(self._toy.from_host(array, device).raw, device)
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a package with backends on the path; all is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "toy_devices", raising=False)

    def install(name, **entry_points):
        (tmp_path / "toy_devices.py").write_text(TOY + PLAIN)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        lines = [f"{type_} = {where}" for type_, where in entry_points.items()]
        (info / "entry_points.txt").write_text(
            "\n".join(["[gradviz.backends]", *lines, ""])
        )

    with backends_as_they_were():
        yield install


def test_a_backend_of_another_package_is_found_when_its_device_is_asked_for(install):
    install("toys", toy="toy_devices:ToyBackend")
    assert "toy_devices" not in sys.modules

    x = gv.tensor([1.0, 2.0], device="toy:1", requires_grad=True)
    y = (x.to("toy:0").exp() * 2).sum()
    y.backward()

    assert x.grad.device is gv.device("toy:1")
    assert x.grad.tolist() == (gv.tensor([1.0, 2.0]).exp() * 2).tolist()
    assert "toy_devices" in sys.modules


def test_its_streams_work_as_any(install):
    install("toys", toy="toy_devices:ToyBackend")

    with gv.Stream("toy:1") as stream:
        assert gv.current_stream("toy") == stream
        assert gv.zeros(2, device="toy").device is gv.device("toy:1")
    event = stream.record_event()
    gv.current_stream("toy:0").wait_event(event)
    gv.synchronize("toy:0")

    assert event.query()
    assert gv.zeros(2).pin_memory("toy").is_pinned()


def test_the_toy_is_all_that_a_backend_has_to_be(install):
    install("toys", toy="toy_devices:ToyBackend")

    backend = base.backend_of(Device("toy", 0))

    assert isinstance(backend, Backend)
    assert isinstance(backend, Accelerator)


def test_a_backend_need_not_have_streams(install):
    install("toys", plain="toy_devices:Plain")

    x = gv.tensor([1.0, 2.0], device="plain:0", requires_grad=True)
    (x.to("plain:1") * 2).sum().backward()

    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="device 'plain:0' has no streams"):
        gv.Stream("plain:0")


def test_its_devices_are_counted(install):
    install("toys", toy="toy_devices:ToyBackend")

    with pytest.raises(RuntimeError, match="no device 'toy:2': there are 2 devices"):
        gv.zeros(1, device="toy:2")


def timed(device):
    """An event that has happened."""
    event = gv.Event(device, enable_timing=True)
    event.record()
    event.synchronize()
    return event


def test_an_event_of_it_is_of_no_use_to_others(install):
    install("toys", toy="toy_devices:ToyBackend")
    event = gv.current_stream("toy").record_event()

    with pytest.raises(
        RuntimeError,
        match="Event device type toy does not match blocking stream's device type sim",
    ):
        gv.current_stream("sim:0").wait_event(event)
    with pytest.raises(
        RuntimeError, match=r"stream toy:0/0 cannot use a tensor on sim"
    ):
        gv.zeros(1, device="sim").record_stream(gv.current_stream("toy"))


def test_it_is_among_those_that_an_error_expects(install):
    install("toys", toy="toy_devices:ToyBackend")

    with pytest.raises(
        RuntimeError,
        match=r"unknown device 'tpu:0': expected one of cpu, cuda, .*toy",
    ):
        gv.zeros(1, device="tpu")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("toy_devices:NoSuch", "could not be loaded: AttributeError: .* 'NoSuch'"),
        (
            "no_such_module:ToyBackend",
            "could not be loaded: ModuleNotFoundError: No mod",
        ),
        ("toy_devices:ToyArray", "could not be loaded: TypeError: "),
        (
            "builtins:dict",
            "is no backend of that type: got dict of type None, expected",
        ),
        ("toy_devices:ToyBackend", "got ToyBackend of type 'toy', expected what"),
    ],
)
def test_a_broken_one_is_named_and_harms_nobody_else(install, where, message):
    install("broken-toys", bad=where, toy="toy_devices:ToyBackend")

    for _ in range(2):
        with pytest.raises(
            RuntimeError, match=f"'bad' devices from broken-toys .*{message}"
        ):
            gv.zeros(1, device="bad:0")

    assert gv.zeros(1, device="toy:0").tolist() == [0.0]
    assert gv.zeros(1, device="sim:0").tolist() == [0.0]
    assert gv.accelerator.current_accelerator().type in ("cuda", "sim")


def test_one_cannot_take_the_place_of_ours(install):
    install("toys", cpu="toy_devices:ToyBackend", sim="toy_devices:ToyBackend")

    assert type(gv.zeros(1).array).__name__ == "ndarray"
    assert type(gv.zeros(1, device="sim").array).__name__ == "SimulatedArray"
