import gzip
import io
import itertools
import os
import pickle
import resource
import socket
import sys
import tarfile
import zipfile

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradviz.errors import TraceError
from gradviz.trace.events import KINDS
from gradviz.trace.format.clock import ClockPair
from gradviz.trace.format.columns import (
    Part,
    RowLayout,
    RowTable,
    encode_events,
    tabulate,
)
from gradviz.trace.format.definitions import (
    Closed,
    Definitions,
    Lost,
    NodeRow,
    encode_json,
)
from gradviz.trace.format.frames import FrameType, encode_frame, pack, scan
from gradviz.trace.format.model import LOST_TEXT, Header
from gradviz.trace.reading.reader import load_trace, parse_trace

NOW = ClockPair(monotonic_ns=1, wall_ns=2)


def header_frame(**fields) -> bytes:
    return encode_frame(
        FrameType.HEADER,
        encode_json(Header(**{"version": (1, 0), "clock": NOW, **fields})),
    )


def rows(code: int, *some: tuple[int, ...]) -> RowTable:
    width = len(some[0])
    layout = RowLayout(width, (Part(code, 0, tuple(range(width))),))
    return tabulate(layout, list(itertools.chain(*some)))


def events_frame(*some: RowTable, thread: int = 0) -> bytes:
    (payload,) = encode_events(thread, some)
    return encode_frame(FrameType.EVENTS, pack(payload))


def definitions_frame(definitions: Definitions) -> bytes:
    return encode_frame(FrameType.DEFINITIONS, pack(encode_json(definitions)))


def started(*nodes: int) -> RowTable:
    return rows(30, *((10 + place, 0, node) for place, node in enumerate(nodes)))


CLOSED = encode_frame(FrameType.CLOSED, encode_json(Closed(0, 0, 0)))


def essence(trace):
    """The events without what the loss of other frames may take from them."""
    return [
        {**msgspec.structs.asdict(event), "seq": 0, "text": ""}
        for event in trace.events()
    ]


@pytest.fixture
def small(bench):
    """A whole trace, written in two rounds, and its events."""
    for number in range(2):
        bench.recorder.node_started(number, 7)
        bench.recorder.mark("here")
        bench.recorder.node_completed(number, 7)
        bench.recorder.flush()
    data = bench.data()
    return data, essence(parse_trace(data))


# --- damage -----------------------------------------------------------------------


def test_every_truncation_leaves_a_prefix_and_says_so(small):
    data, whole = small
    header_size = len(data) - len(data[data.index(b"\x89GVT", 1) :])
    for cut in range(header_size):
        with pytest.raises(TraceError):
            parse_trace(data[:cut])
    lengths = set()
    for cut in range(header_size, len(data)):
        trace = parse_trace(data[:cut])
        events = essence(trace)
        lengths.add(len(events))
        assert events == whole[: len(events)]
        assert not trace.losses.closed
        assert not trace.losses.damaged_bytes
    assert lengths == {0, len(whole) // 2, len(whole)}


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(1, marks=pytest.mark.stress),
        7,  # one or two bits of each byte, in turn each of its eight
    ],
)
def test_a_flipped_bit_is_noticed_costs_one_frame_and_changes_no_event(small, step):
    data, whole = small
    for bit in range(0, 8 * len(data), step):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            trace = parse_trace(bytes(damaged))
        except TraceError:
            continue
        events = essence(trace)
        assert not trace.losses.is_complete
        assert len(events) in (len(whole) // 2, len(whole))
        assert all(event in whole for event in events)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_mutation_gives_anything_but_events_and_losses(data):
    whole = SPLICED
    mutated = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(mutated)))
        end = data.draw(st.integers(place, min(place + 200, len(mutated))))
        other = data.draw(st.integers(0, len(whole)))
        what = data.draw(
            st.sampled_from((b"", whole[other : other + 50], b"\xff" * 8, bytes(30)))
        )
        mutated[place:end] = what
    try:
        trace = parse_trace(bytes(mutated))
    except TraceError:
        return
    nodes = {event.node for event in trace.events()}
    assert nodes <= {1, 2, 3, 4}
    assert bytes(mutated) == whole or not trace.losses.is_complete


SPLICED = (
    header_frame()
    + events_frame(started(1, 2))
    + events_frame(started(3), thread=1)
    + events_frame(started(4))
    + encode_frame(FrameType.CLOSED, encode_json(Closed(4, 0, 0)))
)


def pieces(data: bytes) -> list[bytes]:
    """The frames of a whole file, as bytes."""
    ends = [frame.offset for frame in scan(data)][1:]
    return [data[begin:end] for begin, end in itertools.pairwise([0, *ends, len(data)])]


def recorded(bench) -> list[bytes]:
    """The frames of a recording: header, then definitions and events, ..., closed."""
    for number in range(3):
        bench.recorder.nodes_defined([])
        bench.recorder.mark(f"step {number}")
        bench.recorder.node_started(number, 7)
        bench.recorder.flush()
    return pieces(bench.data())


def changed(mine: list[bytes], others: list[bytes]):
    """Yield changes to the frames of a file, besides cutting its end off."""
    body = range(1, len(mine))
    for place in body:
        before, one, after = mine[:place], mine[place], mine[place + 1 :]
        if after:
            yield f"{place} cut out", [*before, *after]
        yield f"{place} doubled", [*before, one, one, *after]
        yield f"{place} again at the end", [*mine, one]
        yield f"{place} of the other put in", [*before, others[place], one, *after]
        yield f"{place} of the other instead", [*before, others[place], *after]
        yield "no stamp", [*before, events_frame(started(77)), one, *after]
        for other in body:
            if other != place:
                yield f"{other} instead of {place}", [*before, mine[other], *after]
            moved = [*before, *after]
            moved.insert(other, one)
            if other != place:
                yield f"{place} moved to {other}", moved
    yield "the header of the other", [others[0], *mine[1:]]


def test_a_reader_reports_each_change_to_the_frames_of_a_recording(make_bench):
    mine, others = recorded(make_bench()), recorded(make_bench())
    whole = parse_trace(b"".join(mine))
    assert whole.losses.is_complete
    assert len(mine) == 9
    untold = []
    for what, frames in changed(mine, others):
        trace = parse_trace(b"".join(frames))
        events = essence(trace)
        if not trace.losses.problems and trace.losses.closed:
            untold.append(what)
        assert all(event in essence(whole) for event in events), what
        assert "moved" not in what or len(events) == whole.num_events

    assert not untold


def test_a_missing_frame_is_told_by_its_number(bench):
    frames = recorded(bench)
    del frames[3], frames[5:7]

    problems = parse_trace(b"".join(frames)).losses.problems
    assert problems[:2] == ("frame 3 is missing", "frames 6 to 7 are missing")


def test_definitions_that_are_missing_whole_are_noticed_in_older_traces_too():
    node = NodeRow(5, 1, 2, 3, 4, (), ())
    closed = encode_frame(FrameType.CLOSED, encode_json(Closed(0, 1, 0)))
    whole = header_frame() + definitions_frame(Definitions(nodes=[node])) + closed

    assert parse_trace(whole).losses.is_complete
    assert parse_trace(header_frame() + closed).losses.problems == (
        "1 of 1 definitions of nodes are missing",
    )


def test_bytes_between_frames_are_counted_and_told_where():
    head, tail = header_frame(), events_frame(started(1))
    losses = parse_trace(head + b"strange" + tail + CLOSED).losses

    assert losses.damaged_bytes == 7
    assert losses.problems[0] == f"7 bytes from byte {len(head)} on are damaged"


def test_many_problems_are_counted_and_the_first_hundred_told():
    unknown = b"".join(encode_frame(99, b"") for _ in range(250))

    problems = parse_trace(header_frame() + unknown + CLOSED).losses.problems
    assert len(problems) == 101
    assert problems[-1] == "and 150 more"


def test_a_frame_that_is_gone_is_missed_by_the_recorders_account():
    data = SPLICED.replace(events_frame(started(4)), b"")

    trace = parse_trace(data)
    assert trace.num_events == 3
    assert trace.losses.problems == ("1 of 4 recorded events are missing",)


def test_a_doubled_frame_is_more_than_the_recorder_wrote():
    data = SPLICED.replace(CLOSED, b"")
    doubled = data.replace(events_frame(started(4)), 2 * events_frame(started(4)))

    assert not parse_trace(doubled).losses.is_complete


def test_more_than_the_recorder_counted_is_said_as_such():
    closed = encode_frame(FrameType.CLOSED, encode_json(Closed(2, 0, 0)))

    problems = parse_trace(
        header_frame() + events_frame(started(1, 2, 3)) + closed
    ).losses.problems
    assert problems == ("3 recorded events where the recorder counted 2",)


def test_events_that_the_recorder_dropped_are_reported():
    lost = encode_frame(FrameType.LOST, encode_json(Lost(0, 12)))
    closed = encode_frame(FrameType.CLOSED, encode_json(Closed(0, 0, 12)))

    losses = parse_trace(header_frame() + lost + closed).losses
    assert (losses.dropped, losses.problems) == (12, ())
    assert not losses.is_complete


def test_a_text_whose_definition_is_lost_is_called_lost():
    failed = rows(32, (10, 0, 1, 77))

    trace = parse_trace(header_frame() + events_frame(failed) + CLOSED)
    (event,) = trace.events()
    assert event.error == LOST_TEXT


def test_a_node_whose_texts_are_lost_is_still_there():
    node = NodeRow(5, 1, 2, 3, 4, (6, 0), (9, -1))
    data = header_frame() + definitions_frame(Definitions(nodes=[node])) + CLOSED

    defined = parse_trace(data).nodes[5]
    assert (defined.id, defined.name, defined.device) == (5, LOST_TEXT, LOST_TEXT)
    assert defined.edges == ((6, 0),)
    assert [one and one.dtype for one in defined.inputs] == [LOST_TEXT, None]


def test_threads_and_queues_whose_definitions_are_lost_have_numbers():
    popped = rows(21, (10, 0, 1, 4, 0))

    trace = parse_trace(header_frame() + events_frame(popped, thread=3) + CLOSED)
    assert trace.threads[3].name == "thread 3"
    assert (trace.queues[4].name, trace.queues[4].device) == ("queue 4", -2)


# --- other versions ---------------------------------------------------------------


def test_a_later_major_version_is_refused():
    with pytest.raises(TraceError, match=r"format 2\.0.* reads 1\.x"):
        parse_trace(header_frame(version=(2, 0)))


def test_a_later_minor_version_is_read():
    trace = parse_trace(header_frame(version=(1, 99)) + CLOSED)

    assert trace.header.version == (1, 99)
    assert trace.losses.is_complete


def test_fields_of_a_later_version_are_ignored():
    frame = encode_frame(
        FrameType.HEADER,
        b'{"version":[1,7],"clock":{"monotonic_ns":1,"wall_ns":2,"x":0},"mood":"good"}',
    )

    assert parse_trace(frame + CLOSED).header.version == (1, 7)


def test_frames_of_an_unknown_type_are_skipped_and_told():
    unknown = encode_frame(99, b"new")

    trace = parse_trace(header_frame() + unknown + events_frame(started(1)))
    assert trace.num_events == 1
    assert any("unknown type 99" in problem for problem in trace.losses.problems)


def test_events_of_an_unknown_kind_are_skipped_and_counted():
    unknown = rows(999, *[(1, 1, 1, 1, 1)] * 7)

    trace = parse_trace(header_frame() + events_frame(unknown, started(1)) + CLOSED)
    assert trace.num_events == 1
    assert trace.losses.unknown_events == 7


def test_columns_of_a_later_version_are_left_out():
    longer = rows(30, (10, 0, 1, 555))

    (event,) = parse_trace(header_frame() + events_frame(longer)).events()
    assert event.node == 1


def test_columns_that_an_earlier_version_did_not_have_are_zero():
    shorter = rows(21, (10, 0, 1))

    (event,) = parse_trace(header_frame() + events_frame(shorter)).events()
    assert (event.queue, event.queue_length) == (0, 0)


def test_a_value_that_an_enum_does_not_know_is_counted():
    skipped = rows(33, (10, 0, 1, 99), (11, 0, 2, 0))

    trace = parse_trace(header_frame() + events_frame(skipped))
    assert [event.node for event in trace.events()] == [2]
    assert trace.losses.unknown_events == 1


def test_a_second_trace_in_the_same_file_is_left_out():
    trace = parse_trace(SPLICED + SPLICED)

    assert trace.num_events == 4
    assert "another trace begins" in trace.losses.problems[0]


# --- harm --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"strings":[[0,"\xff"]]}',
        b'{"strings":[[0,"\\ud800"]]}',
        b'{"strings":[[-1,"x"]]}',
        b'{"strings":[[1e400,"x"]]}',
        b'{"strings":[[NaN,"x"]]}',
        b'{"nodes":[[1,0,0,0,0,[1],[]]]}',
        b'{"nodes":[[99999999999999999999,0,0,0,0,[],[]]]}',
        b'{"nodes":' + b"[" * 200_000,
    ],
    ids=lambda payload: repr(payload[:40]),
)
def test_definitions_that_are_none_are_damage(payload):
    frame = encode_frame(FrameType.DEFINITIONS, pack(payload))

    trace = parse_trace(header_frame() + frame + events_frame(started(1)) + CLOSED)
    assert trace.num_events == 1
    assert trace.losses.damaged_bytes
    assert "is left out" in trace.losses.problems[0]


def test_hostile_texts_are_data():
    text = "</script>\x1b[31m\0\u202e\u2028__proto__"
    texts = Definitions(strings=[(77, text)])
    failed = rows(32, (10, 0, 1, 77))

    data = header_frame() + definitions_frame(texts) + events_frame(failed)
    (event,) = parse_trace(data).events()
    assert event.error == text


def test_a_small_file_cannot_fill_memory(monkeypatch):
    monkeypatch.setattr(
        "gradviz.trace.format.columns._MAX_NUMBERS", 1 << 30
    )  # as nobody does
    many = rows(20, *((t_ns, *[0] * 9) for t_ns in range(200_000)))
    data = header_frame() + 200 * events_frame(many)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    trace = parse_trace(data)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(data) < 100_000
    assert trace.num_events < 2_000_000
    assert "far more" in trace.losses.problems[0]
    assert after - before < 512 << 10


def test_extreme_numbers_are_only_numbers():
    low, high = -(2**63), 2**63 - 1
    blocks = [rows(code, (5, low, high)) for code in (11, 12, 14, 22, 30)]

    trace = parse_trace(header_frame() + events_frame(*blocks))
    assert [(event.task, event.node) for event in trace.events()] == [(low, high)] * 5


def test_events_whose_times_or_sizes_cannot_be_true_are_left_out_and_counted():
    times = (5, 2**62, -(2**63), 2**58)
    began = rows(12, *((t_ns, 0, 0) for t_ns in times))
    freed = rows(42, (6, 0, 0, 2**60), (7, 0, 0, 2**58))

    trace = parse_trace(header_frame() + events_frame(began, freed))

    assert [event.t_ns for event in trace.events()] == [5, 7, 2**58]
    assert trace.losses.problems == (
        "3 events are left out: their times or sizes cannot be true",
    )


# --- what is no trace ----------------------------------------------------------------


def zip_file():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x", b"y")
    return file.getvalue()


def tar_file():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo("x.gvt")
        info.size = len(SPLICED)
        archive.addfile(info, io.BytesIO(SPLICED))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"x", "is not a gradviz trace"),
        (bytes(1000), "is not a gradviz trace"),
        (b"<!doctype html>", "is not a gradviz trace"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "is not a gradviz trace"),
        (pickle.dumps([1]), "is not a gradviz trace"),
        (gzip.compress(SPLICED), "is not a gradviz trace"),
        (zip_file(), "is not a gradviz trace"),
        (tar_file(), "is damaged in its first frame"),
        (SPLICED[:5], "is cut off inside its first frame"),
        (SPLICED[:30], "is cut off inside its first frame"),
        (SPLICED.replace(b"version", b"verzion"), "is damaged in its first frame"),
        (events_frame(started(1)), "is damaged in its first frame"),
        (encode_frame(FrameType.HEADER, b"{}"), "is damaged in its first frame"),
        (header_frame(version=("1", "0")), "is damaged in its first frame"),
    ],
    ids=[  # not the bytes: archives hold the time
        "empty",
        "byte",
        "zeros",
        "html",
        "png",
        "pickle",
        "gzip",
        "zip",
        "tar",
        "cut in magic",
        "cut in header",
        "misspelt",
        "no header",
        "empty header",
        "version in words",
    ],
)
def test_a_file_that_is_no_trace_is_refused_in_one_line(tmp_path, content, message):
    path = tmp_path / "x.gvt"
    path.write_bytes(content)

    with pytest.raises(TraceError, match=message) as caught:
        load_trace(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(TraceError, match="there is no trace"):
        load_trace(tmp_path / "x.gvt")


def test_a_directory_is_refused(tmp_path):
    with pytest.raises(TraceError, match="is a directory"):
        load_trace(tmp_path)


def test_a_fifo_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "x.gvt")

    with pytest.raises(TraceError, match="not a regular file"):
        load_trace(tmp_path / "x.gvt")


def test_a_device_is_refused():
    with pytest.raises(TraceError, match="not a regular file"):
        load_trace("/dev/zero")


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("x.gvt")
        with pytest.raises(TraceError, match="cannot read"):
            load_trace("x.gvt")


@pytest.mark.skipif(sys.platform != "linux", reason="a file that cannot be read")
def test_a_file_whose_bytes_cannot_be_read_is_refused():
    with pytest.raises(TraceError, match="cannot read '/proc/self/mem'"):
        load_trace("/proc/self/mem")


def test_a_link_to_itself_is_refused(tmp_path):
    path = tmp_path / "x.gvt"
    path.symlink_to(path)

    with pytest.raises(TraceError, match="cannot read"):
        load_trace(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_refused(tmp_path):
    path = tmp_path / "x.gvt"
    path.write_bytes(SPLICED)
    path.chmod(0)

    with pytest.raises(TraceError, match="Permission denied"):
        load_trace(path)


def test_a_path_that_cannot_be_one_is_refused():
    with pytest.raises(TraceError, match="cannot read"):
        load_trace("x\0y.gvt")


@pytest.mark.parametrize("name", ["a\nb.gvt", "\x1b[31m.gvt", "\udcff.gvt", "-o.gvt"])
def test_a_strange_name_does_not_reach_the_terminal_as_it_is(tmp_path, name):
    with pytest.raises(TraceError) as caught:
        load_trace(tmp_path / name)

    assert str(caught.value).isprintable()


def test_a_trace_is_read_through_a_link(tmp_path):
    (tmp_path / "real.gvt").write_bytes(SPLICED)
    (tmp_path / "x.gvt").symlink_to("real.gvt")

    trace = load_trace(tmp_path / "x.gvt")
    assert trace.num_events == 4
    assert trace.path == tmp_path / "x.gvt"


def test_every_kind_can_be_read_back_with_any_number_in_it():
    for code in KINDS:
        trace = parse_trace(header_frame() + events_frame(rows(code, (0,) * 10)))
        assert len(list(trace.events())) == 1
