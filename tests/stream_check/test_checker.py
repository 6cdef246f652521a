import sys
import threading
import weakref
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pytest

import gradviz as gv
from gradviz.analysis.races.event_dispatch import HANDLERS
from gradviz.analysis.races.stream_order import stream_order
from gradviz.backends import simulated
from gradviz.engine import Edge, Engine, Node
from gradviz.errors import StreamRaceError
from gradviz.stream_check.checker import StreamCheck, check_streams
from gradviz.testing import EventList
from gradviz.trace import probe
from gradviz.trace.events import kind_name
from gradviz.trace.probe import Role
from tests.trace.reports import CALLS

A, B = "sim:0/0", "sim:0/1"
WHOLE = "0;8;8;8"


def launch(kernel, stream, memory, *, writes):
    """Report a kernel as a device does."""
    if listener := probe.current:
        listener.kernel_launched(kernel, stream, f"kernel{kernel}")
        listener.array_accessed(kernel, memory, WHOLE, writes)


def race(memory=1):
    launch(1, A, memory, writes=True)
    launch(2, B, memory, writes=False)


def wait(stream, event, producer):
    if listener := probe.current:
        listener.event_recorded(-1, -1, producer, event)
        listener.stream_waited(-1, -1, stream, event, -1)


def test_a_race_raises_at_the_end_of_the_block():
    missing = "sim:0/1 must wait for sim:0/0"
    with pytest.raises(StreamRaceError, match=missing), gv.check_streams():
        race()


def test_a_race_is_only_kept_on_request():
    with check_streams(raise_error=False) as check:
        race()

    (found,) = check.races
    assert (found.first.stream, found.second.stream) == (A, B)


def test_ordered_accesses_raise_no_error():
    with check_streams() as check:
        launch(1, A, 1, writes=True)
        wait(B, 7, A)
        launch(2, B, 1, writes=False)

    assert check.races == ()
    assert check.findings.num_kernels == 2


@pytest.mark.parametrize(
    "sync",
    [
        lambda listener: listener.event_synchronized(7),
        lambda listener: listener.stream_synchronized(A),
        lambda listener: listener.device_synchronized("sim:0"),
    ],
    ids=["event", "stream", "device"],
)
def test_work_that_the_program_has_waited_for_is_ordered(sync):
    with check_streams() as check:
        launch(1, A, 1, writes=True)
        probe.current.event_recorded(-1, -1, A, 7)
        sync(probe.current)
        launch(2, B, 1, writes=False)

    assert check.races == ()


def test_memory_is_checked_from_its_allocation_to_its_end():
    with check_streams(raise_error=False) as check:
        probe.current.memory_allocated(1, A, 64)
        launch(1, B, 1, writes=True)
        probe.current.memory_allocated(2, A, 64)
        wait(B, 7, A)
        launch(2, B, 2, writes=True)
        probe.current.memory_shared(2, B)
        probe.current.memory_freed(2, A)
        probe.current.memory_freed(1, A)

    assert [(one.first.action, one.second.action) for one in check.races] == [
        ("allocation", "kernel1"),
        ("kernel1", "free"),
    ]


def test_races_can_be_asked_for_inside_the_block():
    with check_streams(raise_error=False) as check:
        assert check.races == ()
        race()
        assert len(check.races) == 1
        assert len(check.races) == 1


def test_the_error_of_the_block_is_kept_and_the_races_are_its_note():
    def fail():
        race()
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom") as caught, check_streams():
        fail()

    assert "sim:0/1 must wait for sim:0/0" in caught.value.__notes__[0]


def test_the_error_of_a_block_without_races_has_no_note():
    with pytest.raises(ValueError, match="boom") as caught, check_streams():
        raise ValueError("boom")

    assert not hasattr(caught.value, "__notes__")


def test_nobody_listens_after_the_block():
    with check_streams() as check:
        listener = probe.current
    race()
    listener.kernel_launched(3, A, "late")

    assert probe.current is None
    assert check.findings.num_kernels == 0


def test_two_blocks_may_overlap():
    with check_streams(raise_error=False) as outer:
        launch(1, A, 1, writes=True)
        with check_streams(raise_error=False) as inner:
            launch(2, B, 1, writes=False)

    assert (len(outer.races), len(inner.races)) == (1, 0)


def test_a_race_says_which_line_launched_what():
    with check_streams(raise_error=False) as check:
        probe.current.kernel_launched(1, A, "mul")
        probe.current.array_accessed(1, 1, WHOLE, True)
        probe.current.kernel_launched(2, B, "add")
        probe.current.array_accessed(2, 1, WHOLE, False)
        line = sys._getframe().f_lineno

    (found,) = check.races
    assert found.first.location == f"{__file__}:{line - 4}"
    assert found.second.location == f"{__file__}:{line - 2}"


@pytest.mark.parametrize("kind", HANDLERS, ids=kind_name)
def test_a_check_hears_the_values_of_an_event_that_a_recording_keeps(kind):
    method, events, check = kind_name(kind), EventList(), StreamCheck()
    arguments = CALLS.get(method, {})

    getattr(events, method)(**arguments)
    getattr(check, method)(**arguments)
    line = f"{__file__}:{sys._getframe().f_lineno - 1}"

    tell, fields = HANDLERS[kind]
    expected = msgspec.structs.asdict(events.events[0]) | {"location": line}
    heard, values = check._reports[-1]
    told = dict(zip(fields, values, strict=False))
    assert heard is tell
    assert told.keys() == set(fields)
    assert told == {**{one: expected[one] for one in fields}, **thread_of(told)}


def thread_of(told):
    """A check counts threads, a list of events knows them by another number."""
    return {"thread": told["thread"]} if "thread" in told else {}


def test_a_needless_wait_says_which_line_asked_for_it():
    with check_streams() as check:
        launch(1, A, 1, writes=True)
        wait(B, 7, A)
        probe.current.stream_waited(-1, -1, B, 7, -1)
        line = sys._getframe().f_lineno - 1

    ((found, times),) = check.findings.needless_waits
    assert (found.location, times) == (f"{__file__}:{line}", 1)


class Launch(Node):
    """Writes memory 1 on a stream."""

    puts_it = A

    def apply(self, grad):
        launch(self.id, self.puts_it, 1, writes=True)
        return (grad,)


class LaunchElsewhere(Launch):
    """On another one."""

    puts_it = B


def test_a_race_says_which_node_ran_and_where_it_was_made():
    with check_streams(raise_error=False) as check:
        last = LaunchElsewhere([Edge(None)])
        line = sys._getframe().f_lineno - 1
        first = Launch([Edge(last)])
        Engine().execute([Edge(first)], [np.ones(2)])
        launch(99, A, 2, writes=True)
        launch(98, B, 2, writes=True)

    inside, outside = check.races
    assert (inside.first.node, inside.second.node) == (first.id, last.id)
    assert inside.second.origin.name == "LaunchElsewhere"
    assert inside.second.origin.location == f"{__file__}:{line}"
    assert (outside.first.node, outside.second.node) == (-1, -1)


class Explode(Launch):
    """A kernel that fails."""

    def apply(self, grad):
        super().apply(grad)
        raise ValueError("boom")


def test_a_node_that_fails_ends():
    with check_streams(raise_error=False) as check:
        node = Explode([Edge(None)])
        with pytest.raises(ValueError, match="boom"):
            Engine().execute([Edge(node)], [np.ones(2)])
        launch(99, B, 1, writes=True)

    (found,) = check.races
    assert (found.first.node, found.second.node) == (node.id, -1)


def test_a_thread_that_exits_is_inside_no_node():
    with check_streams(raise_error=False) as check:
        probe.current.node_started(0, 4)
        probe.current.thread_exited(-1, Role.CALLER)
        race()

    assert check.races[0].first.node == -1


def test_threads_are_told_apart():
    with check_streams(raise_error=False) as check:
        probe.current.node_started(0, 4)
        thread = threading.Thread(
            target=launch, args=(1, A, 1), kwargs={"writes": True}
        )
        thread.start()
        thread.join()
        launch(2, B, 1, writes=True)

    assert (check.races[0].first.node, check.races[0].second.node) == (-1, 4)


def test_a_check_keeps_no_node_alive():
    with check_streams():
        node = Launch([Edge(None)])
        Engine().execute([Edge(node)], [np.ones(2)])
        gone = weakref.ref(node)
        del node
        assert gone() is None


class Name(str):
    """A text whose end is reported, in the middle of whatever drops it."""

    __slots__ = ()

    def __del__(self):
        launch(-1, A, 1, writes=False)


def test_a_finaliser_may_report_in_the_middle_of_the_check():
    with check_streams() as check:
        for kernel in range(10_000):
            probe.current.kernel_launched(kernel, A, Name("kernel"))

        assert check.findings.num_kernels > 12_000  # the check forgets old kernels


def test_a_check_that_is_stopped_twice_is_stopped():
    check = StreamCheck()
    check.start()
    check.stop()
    check.stop()

    assert probe.current is None


# --- real programs, on a simulated device ---------------------------------------------


@pytest.fixture
def side() -> Iterator[gv.Stream]:
    """A stream of a device that does its work as late as it may."""
    with simulated.stepped(seed=0):
        yield gv.Stream("sim:0")


def leaf() -> gv.Tensor:
    return gv.ones(8, device="sim:0", requires_grad=True)


def here() -> gv.Stream:
    return gv.current_stream("sim:0")


class Scale(gv.autograd.Function):
    """Doubles on a stream of its own: `side`."""

    waits: Sequence[str] = ()
    side: gv.Stream

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        caller = here()
        if "before" in Scale.waits:
            Scale.side.wait_stream(caller)
        with gv.stream(Scale.side):
            doubled = 2 * grad
        if "after" in Scale.waits:
            caller.wait_stream(Scale.side)
        if "record" in Scale.waits:
            doubled.record_stream(caller)
        return doubled


ALL_WAITS = ("before", "after", "record")


def run_scale(side, waits):
    Scale.side, Scale.waits = side, waits
    x = leaf()
    with check_streams(raise_error=False) as check:
        Scale.apply(3 * x).sum().backward()
        del x
        gv.synchronize("sim:0")
    return check


def test_a_function_that_waits_for_its_stream_and_is_waited_for_is_in_order(side):
    assert run_scale(side, ALL_WAITS).races == ()


@pytest.mark.parametrize(
    ("forgotten", "missing"),
    [
        ("before", "{side} must wait for sim:0/0"),
        ("after", "sim:0/0 must wait for {side}"),
    ],
)
def test_a_function_that_forgets_a_wait_is_caught(side, forgotten, missing):
    waits = [wait for wait in ALL_WAITS if wait != forgotten]

    (found,) = run_scale(side, waits).races
    assert found.remedy.startswith(missing.format(side=side))
    late_or_early = found.second if forgotten == "before" else found.first
    assert late_or_early.origin.name == "ScaleBackward"
    assert late_or_early.origin.location.startswith(f"{__file__}:")
    assert late_or_early.location.startswith(f"{__file__}:")


def test_a_missing_wait_is_found_in_a_recording_too(side, request):
    request.node.add_marker(pytest.mark.races)
    with gv.record() as recording:
        Scale.side, Scale.waits = side, ("after", "record")
        Scale.apply(3 * leaf()).sum().backward()
        gv.synchronize("sim:0")

    ((found, _),) = stream_order(recording.trace).races
    assert found.second.origin.name == "ScaleBackward"


def test_memory_that_goes_while_another_stream_uses_it_is_caught(side):
    x = gv.ones(8, device="sim:0")
    with check_streams(raise_error=False) as check:
        y = x + 1
        side.wait_stream(here())
        with gv.stream(side):
            z = 2 * y
        del y
        gv.ones(8, device="sim:0")  # whoever comes next may get the memory
        here().wait_stream(side)
        z.tolist()

    (found,) = check.races
    assert (found.first.stream, found.second.action) == (str(side), "free")
    assert "record_stream" in found.remedy


def test_memory_of_a_recorded_stream_may_go(side):
    x = gv.ones(8, device="sim:0")
    with check_streams() as check:
        y = x + 1
        side.wait_stream(here())
        with gv.stream(side):
            z = 2 * y
        y.record_stream(side)
        del y
        gv.ones(8, device="sim:0")
        here().wait_stream(side)
        z.tolist()

    assert check.findings.num_kernels > 3


def test_a_value_that_the_program_reads_orders_what_it_launches_next(side):
    with check_streams():
        x = gv.ones(8, device="sim:0") + 1
        x.tolist()
        with gv.stream(side):
            (2 * x).tolist()


def test_halves_of_an_array_may_be_used_by_two_streams(side):
    x = gv.zeros(8, device="sim:0")
    side.wait_stream(here())
    with check_streams():
        x[:4].add_(1)
        with gv.stream(side):
            x[4:].add_(2)
        gv.synchronize("sim:0")

    assert x.tolist() == [1.0] * 4 + [2.0] * 4


def test_a_copy_between_devices_is_in_order():
    with simulated.stepped(seed=0), check_streams() as check:
        x = gv.ones(8, device="sim:0", requires_grad=True)
        y = (2 * x).to("sim:1")
        (3 * y).sum().backward()
        assert x.grad.tolist() == [6.0] * 8

    assert check.findings.num_kernels > 5


def test_a_correct_program_of_two_streams_is_in_order(side):
    with check_streams():
        x, y = leaf(), leaf()
        side.wait_stream(here())
        with gv.stream(side):
            a = 2 * x
        b = 3 * y
        here().wait_stream(side)
        a.record_stream(here())
        (a * b).sum().backward()
        assert x.grad.tolist() == y.grad.tolist() == [6.0] * 8


def until(is_done):
    while not is_done():
        pass


@pytest.mark.parametrize(
    "wait",
    [
        lambda stream: until(stream.record_event().query),
        lambda stream: until(stream.query),
    ],
    ids=["event", "stream"],
)
def test_a_program_that_asks_until_the_answer_is_yes_has_waited(side, wait):
    with check_streams():
        x = gv.ones(8, device="sim:0") + 1
        wait(here())
        with gv.stream(side):
            (2 * x).tolist()


def test_a_no_orders_nothing(side):
    with check_streams(raise_error=False) as check:
        x = gv.ones(8, device="sim:0")
        for _ in range(8):
            x += 1
        assert not here().query()
        with gv.stream(side):
            (2 * x).tolist()

    assert len(check.races) == 1


# --- memory of the host that a device copies ------------------------------------------


def computed():
    return gv.ones(8, device="sim:0") + 1


def copied_out():
    """A copy in pinned memory, which may still be going on."""
    return computed().to("cpu", non_blocking=True)


def copied_into(host):
    return host.copy_(computed(), non_blocking=True)


READS = {
    "item": lambda host: host[0].item(),
    "list": lambda host: host.tolist(),
    "op": lambda host: host + 1,
    "text": repr,
    "copy to a device": lambda host: host.to("sim:1"),
    "numpy, index": lambda host: host.numpy()[3],
    "numpy, function": lambda host: np.sum(host.numpy()),
    "numpy, loop": lambda host: list(host.numpy()),
    "tensor": lambda host: gv.tensor(host.numpy()),
}


@pytest.mark.usefixtures("side")
@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("is_awaited", [False, True])
def test_the_program_has_to_wait_for_a_copy_before_it_reads(read, is_awaited):
    target = gv.zeros(8, pin_memory=True)
    for copy in (copied_out, lambda: copied_into(target)):
        with check_streams(raise_error=False) as check:
            host = copy()
            if is_awaited:
                here().synchronize()
            read(host)

        assert len(check.races) == (not is_awaited)
        gv.synchronize("sim:0")


@pytest.mark.usefixtures("side")
def test_a_read_that_waits_for_nothing_says_what_the_program_has_to_wait_for():
    with check_streams(raise_error=False) as check:
        host = copied_out()
        host.tolist()
        line = sys._getframe().f_lineno - 1

    (found,) = check.races
    assert (found.first.action, found.second.stream) == ("Memcpy DtoH", "host")
    assert found.second.location == f"{__file__}:{line}"
    assert found.remedy.startswith("the program must wait for sim:0/0 before this")


WRITES = {
    "op in place": lambda host: host.add_(1),
    "fill": lambda host: host.fill_(0),
    "index": lambda host: host.__setitem__(0, 1.0),
    "numpy, index": lambda host: host.numpy().__setitem__(0, 1.0),
    "numpy, in place": lambda host: host.numpy().sort(),
    "numpy, out": lambda host: np.add(1, 2, out=host.numpy()),
    "random": lambda host: host.uniform_(),
}


@pytest.mark.usefixtures("side")
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("is_awaited", [False, True])
def test_the_program_has_to_wait_for_a_copy_before_it_writes(write, is_awaited):
    target = gv.zeros(8, device="sim:0")
    for copy in (
        lambda host: host.to("sim:0", non_blocking=True),
        lambda host: target.copy_(host, non_blocking=True),
    ):
        with check_streams(raise_error=False) as check:
            host = gv.ones(8).pin_memory()
            copy(host)
            if is_awaited:
                here().synchronize()
            write(host)

        assert len(check.races) == (not is_awaited)
        gv.synchronize("sim:0")


@pytest.mark.usefixtures("side")
def test_a_copy_from_pinned_memory_does_not_hinder_a_read_of_it():
    with check_streams():
        host = gv.ones(8).pin_memory()
        host.to("sim:0", non_blocking=True)
        assert host.sum() == 8


@pytest.mark.usefixtures("side")
def test_copies_of_other_than_pinned_memory_are_waited_for():
    with check_streams():
        host = gv.ones(8)
        there = host.to("sim:0", non_blocking=True)
        host.zero_()
        host.copy_(there, non_blocking=True)
        assert host.tolist() == [1.0] * 8


@pytest.mark.usefixtures("side")
def test_a_copy_that_casts_on_the_host_has_read_it():
    with check_streams():
        host, there = gv.ones(8).pin_memory(), gv.zeros(8, device="sim:0").double()
        there.copy_(host, non_blocking=True)
        host.zero_()
        assert there.tolist() == [1.0] * 8


@pytest.mark.usefixtures("side")
def test_halves_of_pinned_memory_may_be_copied_and_used_in_turn():
    """Two buffers in one piece of memory, each waited for before it is used again."""
    with check_streams():
        host = gv.zeros(2, 4, pin_memory=True)
        done = [None, None]
        total = gv.zeros(4, device="sim:0")
        for step in range(6):
            half = host[step % 2]
            if done[step % 2]:
                done[step % 2].synchronize()
            half.numpy()[:] = step
            total += half.to("sim:0", non_blocking=True)
            done[step % 2] = here().record_event()
        assert total.tolist() == [15.0] * 4


@pytest.mark.usefixtures("side")
def test_a_pinned_tensor_may_go_while_it_is_copied():
    with check_streams():
        there = gv.ones(8).pin_memory().to("sim:0", non_blocking=True)
        gv.zeros(8, pin_memory=True)
        assert there.tolist() == [1.0] * 8


def test_an_access_of_the_host_is_found_in_a_recording_too(side, request):
    request.node.add_marker(pytest.mark.races)
    with gv.record() as recording:
        copied_out().tolist()

    ((found, _),) = stream_order(recording.trace).races
    assert found.second.stream == "host"


@pytest.mark.races
def test_a_recording_says_what_the_program_calls_its_streams_and_where_it_made_them():
    with gv.sim.stepped(), gv.record() as recording:
        x = gv.ones(8, device="sim:0")
        mine = gv.Stream("sim:0")
        line = sys._getframe().f_lineno - 1
        with mine:
            2 * x
        gv.synchronize("sim:0")

    ((found, _),) = stream_order(recording.trace).races
    assert found.second.stream_origin.name == "mine"
    assert found.second.stream_origin.location == f"{__file__}:{line}"


@pytest.mark.races
def test_a_recording_tells_threads_apart():
    x = gv.ones(8, device="sim:0")
    gv.synchronize("sim:0")
    is_done = []

    def work(before):
        until(before)
        with gv.Stream("sim:0") as own:
            x.add_(1)
        own.synchronize()
        is_done.append(True)

    with gv.record() as recording:
        threads = [
            threading.Thread(target=work, args=(before,))
            for before in (lambda: True, lambda: is_done)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(stream_order(recording.trace).races) == 1


# --- what a race says of the program --------------------------------------------------


class Model:
    """Has a stream."""

    def __init__(self):
        self.own_stream = gv.Stream("sim:0")

    def run(self, x):
        with self.own_stream:
            return 2 * x


def race_of(run):
    with check_streams(raise_error=False) as check:
        run(gv.ones(8, device="sim:0"))
        gv.synchronize("sim:0")
    return check.races[0]


def by_variable(x):
    mine = gv.Stream("sim:0")
    with mine:
        return 2 * x


def by_list(x):
    streams = [gv.Stream("sim:0"), gv.Stream("sim:0")]
    with streams[1]:
        return 2 * x


def by_dict(x):
    streams = {"copy": gv.Stream("sim:0")}
    with streams["copy"]:
        return 2 * x


def by_attribute(x):
    model = Model()
    return model.run(x)


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (by_variable, "mine"),
        (by_list, "streams[1]"),
        (by_dict, "streams['copy']"),
        (by_attribute, "self.own_stream"),
    ],
)
def test_a_remedy_has_the_programs_own_names(run, name):
    found = race_of(run)

    assert found.second.stream_origin.name == name
    default = 'gv.default_stream("sim:0")'
    assert found.remedy.endswith(f"before this: {name}.wait_stream({default})")


def test_a_race_says_where_its_streams_were_made():
    mine = gv.Stream("sim:0")
    line = sys._getframe().f_lineno - 1

    def run(x):
        with mine:
            return 2 * x

    found = race_of(run)
    assert found.second.stream_origin.location == f"{__file__}:{line}"
    assert found.first.stream_origin.location == ""
    assert f"(mine, made at {__file__}:{line})" in str(found)


def test_a_race_of_a_backward_pass_says_which_line_has_called_it(side):
    Scale.side, Scale.waits = side, ("after", "record")
    with check_streams(raise_error=False) as check:
        loss = Scale.apply(3 * leaf()).sum()
        loss.backward()
        line = sys._getframe().f_lineno - 1
        gv.synchronize("sim:0")

    (found,) = check.races
    assert found.second.backward == f"{__file__}:{line}"
    assert f"backward called at {__file__}:{line}" in str(found)


def test_a_remedy_has_the_programs_own_name_of_the_tensor_that_goes():
    def run(x):
        mine, ready = gv.Stream("sim:0"), x + 1
        mine.wait_stream(here())
        with mine:
            2 * ready
        del ready

    assert "call ready.record_stream(mine)" in race_of(run).remedy
