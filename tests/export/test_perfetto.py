"""Perfetto files, read with Perfetto's own classes and held to its viewer's rules."""

from collections import Counter, defaultdict

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

import gradviz as gv
from gradviz.capture.session import record
from gradviz.export.perfetto import parts
from gradviz.trace import events as e
from gradviz.trace.probe import How
from gradviz.trace.reading.reader import parse_trace
from tests.export.recordings import of_every_kind

Kind = proto.TrackEvent


class Read:
    """A file, read with the classes of the package ``perfetto``."""

    def __init__(self, trace):
        self.file = proto.Trace()
        self.file.ParseFromString(b"".join(parts(trace)))
        self.tracks, self.events = {}, defaultdict(list)
        for packet in self.file.packet:
            if packet.HasField("track_descriptor"):
                one = packet.track_descriptor
                self.tracks[one.uuid] = one
            else:
                event = packet.track_event
                self.events[event.track_uuid].append((packet.timestamp, event))

    def name(self, track):
        one = self.tracks[track]
        return one.name or one.thread.thread_name or one.process.process_name

    def path(self, track):
        parent = self.tracks[track].parent_uuid
        return [*(self.path(parent) if parent else []), self.name(track)]

    def slices(self):
        """Begin, end, depth, track, and the event that begins each slice."""
        for track, events in self.events.items():
            still_open = []
            for t_ns, event in events:
                if event.type == Kind.TYPE_SLICE_BEGIN:
                    still_open.append((t_ns, event))
                elif event.type == Kind.TYPE_SLICE_END:
                    depth = len(still_open) - 1
                    begin, first = still_open.pop()
                    yield begin, t_ns, depth, track, first
            assert not still_open

    def of(self, category):
        return [one for one in self.slices() if category in one[-1].categories]


def said(event):
    """The annotations of an event."""
    values = {}
    for one in event.debug_annotations:
        values[one.name] = getattr(one, one.WhichOneof("value"))
    return values


def ran(trace):
    """Return the start and end of each node of each pass, event by event."""
    starts, ends = {}, {}
    for one in trace.events():
        if isinstance(one, e.NodeStarted):
            starts[one.task, one.node] = one
        if isinstance(one, e.NodeCompleted | e.NodeFailed):
            ends[one.task, one.node] = one.t_ns
    return starts, ends


def origin(trace):
    return next(trace.events()).t_ns


def test_the_file_keeps_the_rules_of_viewers(trace):
    read = Read(trace)
    known = set()
    for packet in read.file.packet:
        assert packet.trusted_packet_sequence_id == 1
        if packet.HasField("track_descriptor"):
            one = packet.track_descriptor
            assert one.uuid not in known
            assert one.parent_uuid in known or not one.parent_uuid
            known.add(one.uuid)
        else:
            assert packet.track_event.track_uuid in known
    for events in read.events.values():
        times = [t_ns for t_ns, _ in events]
        assert times == sorted(times)
        open_slices = 0
        for _, event in events:
            open_slices += event.type == Kind.TYPE_SLICE_BEGIN
            open_slices -= event.type == Kind.TYPE_SLICE_END
            assert open_slices >= 0
        assert open_slices == 0


def test_slices_of_a_thread_nest_inside_of_each_other(trace):
    read = Read(trace)
    for track in read.events:
        own = sorted(one[:3] for one in read.slices() if one[3] == track)
        for begin, end, depth in own:
            around = [
                one
                for one in own
                if one[0] <= begin and end <= one[1] and one[2] < depth
            ]
            assert len(around) >= depth


def test_each_node_is_a_slice_of_the_thread_that_ran_it(trace):
    starts, ends = ran(trace)
    first = origin(trace)
    found = {}
    for begin, end, _, track, event in Read(trace).of("node"):
        facts = said(event)
        found[facts["task"], facts["node"]] = (begin, end, track, event.name)
    read = Read(trace)

    for key, start in starts.items():
        begin, end, track, name = found[key]
        assert begin == start.t_ns - first
        assert end == ends[key] - first
        assert name == trace.nodes[start.node].name
        assert trace.threads[start.thread].name in read.path(track)[1]


def test_each_task_lies_in_its_queue_from_push_to_pop(trace):
    first, pushed, expected = origin(trace), {}, Counter()
    for one in trace.events():
        if isinstance(one, e.TaskPushed):
            pushed[one.task, one.node, one.queue] = one.t_ns - first
        elif isinstance(one, e.TaskPopped):
            begin = pushed.pop((one.task, one.node, one.queue))
            name = f"queue {trace.queues[one.queue].name}"
            expected[name, one.node, begin, one.t_ns - first] += 1
    read = Read(trace)
    found = Counter()
    for begin, end, depth, track, event in read.of("queue"):
        assert depth == 0  # what overlaps is on tracks of their own
        node = said(event)["node"]
        if (said(event)["task"], node) not in {key[:2] for key in pushed}:
            found[read.name(track), node, begin, end] += 1

    assert found == expected


def test_arrows_lead_from_pushes_to_what_ran_and_along_gradients(trace):
    starts, _ = ran(trace)
    sources, targets = defaultdict(list), defaultdict(list)
    for events in Read(trace).events.values():
        for t_ns, event in events:
            for flow in event.flow_ids:
                sources[flow].append((t_ns, event))
            for flow in event.terminating_flow_ids:
                targets[flow].append((t_ns, event))
    assert sources.keys() == targets.keys()
    pushes, gradients = Counter(), Counter()
    for flow, ((begin, source),) in sources.items():
        ((end, target),) = targets[flow]
        assert begin <= end
        one, other = said(source), said(target)
        assert one["task"] == other["task"]
        if source.type == Kind.TYPE_INSTANT:
            assert one["node"] == other["node"]
            pushes[one["task"], one["node"]] += 1
        else:
            gradients[one["task"], one["node"], other["node"]] += 1

    told = [*trace.events()]
    assert pushes == Counter(
        (one.task, one.node)
        for one in told
        if isinstance(one, e.TaskPushed) and (one.task, one.node) in starts
    )
    assert gradients == Counter(
        (one.task, one.producer, one.node)
        for one in told
        if isinstance(one, e.GradientBuffered)
        and {(one.task, one.producer), (one.task, one.node)} <= starts.keys()
    )


def counter(read, name):
    """The values of a counter by time."""
    (track,) = [one for one in read.tracks if read.name(one) == name]
    return [(t_ns, event.counter_value) for t_ns, event in read.events[track]]


def test_the_length_of_a_queue_is_what_was_pushed_and_not_popped(trace):
    first, queued, expected = origin(trace), defaultdict(list), defaultdict(dict)
    for one in trace.events():
        at = one.t_ns - first
        if isinstance(one, e.TaskPushed):
            queued[one.queue].append((one.task, one.node))
        elif isinstance(one, e.TaskPopped):
            queued[one.queue].remove((one.task, one.node))
        elif isinstance(one, e.TaskFailed):  # what it leaves behind is let go
            for queue, tasks in queued.items():
                left = [key for key in tasks if key[0] != one.task]
                if left != tasks:
                    queued[queue] = left
                    expected[queue][at] = len(left)
            continue
        else:
            continue
        expected[one.queue][at] = len(queued[one.queue])
    read = Read(trace)

    for queue, steps in expected.items():
        name = f"queue {trace.queues[queue].name}: length"
        assert counter(read, name) == [*steps.items()]


def test_buffered_gradients_are_counted_in_bytes(pair):
    story, root, leaf = pair
    story.begin(8, [root, leaf], at=200)
    story.start(8, root, at=210)
    story.gradient(8, leaf, root, 24, at=220)
    story.gradient(8, leaf, root, 24, at=230, how=How.IN_PLACE)
    story.complete(8, root, at=240)
    story.ran(8, leaf, at=250, until=260)
    story.end(8, at=270)
    trace = story.trace()
    read = Read(trace)
    first = origin(trace)

    steps = counter(read, "buffered gradients")
    assert [(t_ns + first - 1000, value) for t_ns, value in steps] == [
        (220, 24),
        (230, 24),
        (260, 0),
    ]
    units = {one.counter.unit for one in read.tracks.values() if one.counter.unit}
    assert units == {
        proto.CounterDescriptor.UNIT_COUNT,
        proto.CounterDescriptor.UNIT_SIZE_BYTES,
    }


def test_a_pass_from_inside_another_is_a_slice_inside_of_it(story):
    node = story.node(1)
    story.begin(7, [node], at=0)
    story.begin(8, [node], at=10, parent=7)
    story.end(8, at=20)
    story.end(7, at=30)
    (inner, outer) = sorted(Read(story.trace()).of("pass"), key=lambda one: -one[2])

    assert (inner[2], outer[2]) == (1, 0)
    assert outer[0] < inner[0] < inner[1] < outer[1]
    assert said(inner[-1])["parent"] == 7


def test_a_step_is_seen_whole():
    model = gv.nn.Sequential(gv.nn.Linear(3, 2), gv.nn.Tanh())
    optimizer = gv.optim.SGD(model.parameters(), lr=0.1)
    with record() as recording:
        model(gv.ones(2, 3)).sum().backward()
        optimizer.step()
    trace = recording.trace
    read, first = Read(trace), origin(trace)
    begun, returned = {}, {}
    for one in trace.events():
        if isinstance(one, e.ForwardBegun):
            begun[one.call] = one
        elif isinstance(one, e.ForwardEnded):
            returned[one.call] = one.t_ns - first
    calls = {one[-1].name: one for one in read.of("forward")}

    assert len(calls) == 3
    for call, event in begun.items():
        begin, end, depth, _, shown = calls[event.module]
        assert (begin, end) == (event.t_ns - first, returned[call])
        assert depth == event.module.count(".")
        assert said(shown) == {"class": event.name}
    ((step_begin, _, _, _, step),) = read.of("optimizer")
    assert step.name == "SGD.step"
    assert max(one[1] for one in read.of("node")) < step_begin


def test_work_of_a_stream_is_on_a_track_of_its_device(story):
    story.begin(7, [story.node(1)], at=0)
    story.kernel(1, "sim:0/0", at=5, ran=(10, 30))
    story.kernel(2, "sim:0/1", at=6, ran=(20, 40), name="add")
    story.end(7, at=50)
    read = Read(story.trace())
    found = {one[-1].name: one for one in read.of("kernel")}

    assert read.path(found["mul"][3])[1:] == ["device sim:0", "stream sim:0/0"]
    assert read.path(found["add"][3])[1:] == ["device sim:0", "stream sim:0/1"]
    assert [one[1] - one[0] for one in found.values()] == [20, 20]


def test_an_unfinished_slice_ends_with_the_trace_and_says_so(story):
    node = story.node(1)
    story.begin(7, [node], at=0)
    story.start(7, node, at=10)
    story.kernel(1, "sim:0/0", at=20, ran=(30, 90))
    read = Read(story.trace())

    ((_, end, _, _, event),) = read.of("node")
    assert said(event)["status"] == "unfinished"
    assert end == read.of("kernel")[0][1] == read.of("pass")[0][1]


def test_losses_of_a_trace_are_marked(pair):
    story, *_ = pair
    whole = story.contents()

    def marks(trace):
        read = Read(trace)
        lost = [
            one for one in read.tracks if read.name(one) == "missing from the trace"
        ]
        return [event.name for track in lost for _, event in read.events[track]]

    assert marks(parse_trace(whole)) == []
    assert "truncated: the end of the file is cut off" in marks(parse_trace(whole[:-7]))


def test_numbers_of_any_size_make_a_file_that_can_be_read():
    read = Read(parse_trace(of_every_kind()))

    assert read.events
    assert all(t_ns >= 0 for events in read.events.values() for t_ns, _ in events)
