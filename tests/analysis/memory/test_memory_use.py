"""Memory, against a recomputation from single events, and against known sizes."""

import random
import threading
from collections import defaultdict

import numpy as np
import pytest

import gradviz as gv
from gradviz import sim
from gradviz.analysis.memory.memory_use import (
    PURPOSES,
    build_memory,
    document_of,
    memory_at,
)
from gradviz.analysis.tables.spans import MAX_POINTS, thinned
from gradviz.analysis.tables.window import NoSuchMomentError
from gradviz.capture.session import record
from gradviz.ops.variables.variable import Variable
from gradviz.trace import events as e
from gradviz.trace.probe import How, Push

KIB = 1024


def numbers(kib, **options):
    """A tensor of so many KiB."""
    return gv.ones(kib * KIB // 8, dtype=gv.float64, **options)


class Ledger:
    """Held memory, counted event by event: slowly, with knowledge of the future."""

    def __init__(self, trace):
        self.events = list(trace.events())
        self.edges = {id_: [to for to, _ in n.edges] for id_, n in trace.nodes.items()}
        self.last = {one.task: one.seq for one in self.events}
        self.over = {
            one.task
            for one in self.events
            if isinstance(one, (e.TaskCompleted, e.TaskFailed))
        }
        self.keeps = {
            one.task: one.keep_graph
            for one in self.events
            if isinstance(one, e.TaskBegun)
        }

    def of(self, *kinds, node=None, task=None):
        return [
            one
            for one in self.events
            if isinstance(one, kinds)
            and node in (None, one.node)
            and task in (None, one.task)
        ]

    def at(self, seq):
        """Bytes by purpose right after an event."""
        sizes = dict.fromkeys(PURPOSES, 0)
        for purpose, begin, end, size in self.spans():
            if begin <= seq < end:
                sizes[purpose] += size
        return sizes

    def spans(self):
        if not hasattr(self, "_spans"):
            self._spans = [*self.buffers(), *self.saved(), *self.gradients()]
        return self._spans

    def end_of_pass(self, task):
        return self.last[task] + 1 if task in self.over else len(self.events)

    def buffers(self):
        arrived = defaultdict(list)
        for one in self.of(e.GradientBuffered):
            if one.how is not How.UNDEFINED:
                arrived[one.task, one.node].append((one.seq, one.input_nr, one))
        for one in self.of(e.TaskPushed):
            if one.what is Push.ROOT:
                freed = self.of(e.BufferFreed, node=one.node, task=one.task)
                arrived[one.task, one.node].append((one.seq, 0, freed and freed[0]))
        for (task, node), rows in arrived.items():
            gone, result = self.end_of_pass(task), False
            for one in self.of(
                *(e.BufferFreed, e.NodeFailed, e.NodeSkipped, e.NodeCompleted),
                *(e.CaptureTaken, e.GradientAccumulated),
                node=node,
                task=task,
            ):
                if isinstance(one, e.GradientAccumulated) and one.how is not How.STOLEN:
                    continue
                gone, result = one.seq, isinstance(one, e.CaptureTaken)
                break
            for place, (begin, input_nr, one) in enumerate(rows):
                size = one.size_bytes if one else 0
                later = [row[0] for row in rows[place + 1 :] if row[1] == input_nr]
                yield "buffers", begin, later[0] if later else gone, size
                if result and not later:
                    yield "results", gone, self.last[task] + 1, size

    def saved(self):
        for one in self.of(e.TensorSaved):
            freed = [
                run.seq
                for run in self.of(e.BufferFreed, node=one.node)
                if not self.keeps[run.task]
            ]
            if freed:
                yield "saved", one.seq, freed[0], one.size_bytes
                continue
            ran = [run.task for run in self.of(e.NodeStarted, node=one.node)]
            failed = [
                run.task
                for run in self.of(e.TaskFailed)
                if one.node in self.reachable(run.task)
            ]
            heard = max([self.last[task] + 1 for task in ran + failed], default=one.seq)
            heard = max(heard, one.seq)
            yield "saved", one.seq, heard, one.size_bytes
            yield "unclaimed", heard, len(self.events), one.size_bytes

    def reachable(self, task):
        pushes = self.of(e.TaskPushed, task=task)
        waiting = [one.node for one in pushes if one.what is Push.ROOT]
        found = set()
        while waiting:
            node = waiting.pop()
            if node >= 0 and node not in found:
                found.add(node)
                waiting += self.edges.get(node, [])
        return found

    def gradients(self):
        began = {one.task: one.seq for one in self.of(e.TaskBegun)}
        callers = {one.task: one.parent for one in self.of(e.TaskBegun)}

        def outermost(task):
            return task if callers[task] < 0 else outermost(callers[task])

        for node in {one.node for one in self.of(e.GradientAccumulated)}:
            held = None
            for one in self.of(e.GradientAccumulated, node=node):
                if one.how is How.UNDEFINED:
                    continue
                is_new = one.how in (How.COPIED, How.STOLEN)
                if held and is_new:
                    begin, size, heard = held
                    cleared = began[outermost(one.task)]
                    cleared = cleared if cleared > heard.seq else one.seq
                    yield "gradients", begin, cleared, size
                    held = None
                if held is None:
                    freed = self.of(e.BufferFreed, node=node, task=one.task)
                    size = freed[0].size_bytes if freed else 0
                    begin = one.seq if is_new else began[outermost(one.task)]
                else:
                    begin, size, _ = held
                held = begin, size, one
            if held:
                begin, size, heard = held
                gone = max(self.last[heard.task] + 1, begin)
                yield "gradients", begin, gone, size
                yield "unclaimed", gone, len(self.events), size


def any_program(seed):
    """Random graphs on one to four devices, and random passes over them."""
    some = random.Random(seed)
    devices = ["cpu", *(f"sim:{n}" for n in range(some.randint(0, 4)))]
    leaves = [numbers(1, requires_grad=True) for _ in range(2)]
    for _ in range(some.randint(1, 3)):
        values = any_values(some, devices, leaves)
        loss = sum(
            (one.to("cpu").sum() for one in some.sample(values, 2)), gv.zeros(())
        )
        any_passes(some, values, loss + leaves[0].sum())
        if some.random() < 0.6:
            for leaf in leaves:
                leaf.grad = None


def any_values(some, devices, leaves):
    values = list(leaves)
    for _ in range(some.randint(3, 14)):
        x = some.choice(values)
        match some.randint(0, 4):
            case 0:
                values.append(x.sin())
            case 1:
                values.append(x * some.choice(values).to(x.device))
            case 2:
                values.append(x + some.choice(values).to(x.device))
            case 3:
                values.append(x.to(some.choice(devices)).exp())
            case 4:
                first, second = x.split(64)
                values.append(gv.cat([second, first.cos()]))
    return values


def any_passes(some, values, loss):
    match some.randint(0, 4):
        case 0:
            loss.backward(retain_graph=True)
            if some.random() < 0.5:
                loss.backward()
        case 1:
            wanted = some.sample(values, 2)
            gv.autograd.grad(loss, wanted, allow_unused=True, retain_graph=True)
            loss.backward()
        case 2:
            values[-1].register_hook(refuse)
            with pytest.raises(ValueError, match="no"):
                (loss + values[-1].to("cpu").sum()).backward()
        case 3:
            x = values[-1].to("cpu")
            x = gv.utils.checkpoint.checkpoint(gv.sin, x, use_reentrant=True)
            (loss + x.sum()).backward()
        case 4:
            loss.backward()


def refuse(grad):
    raise ValueError("no")


@pytest.fixture
def four_devices():
    count = sim.device_count()
    sim.set_device_count(4)
    yield
    sim.set_device_count(count)


@pytest.mark.usefixtures("four_devices")
@pytest.mark.parametrize("seed", range(14))
def test_every_figure_is_what_the_single_events_add_up_to(seed):
    with record() as recording:
        any_program(seed)
    trace = recording.trace
    ledger = Ledger(trace)
    began = {one.task: one.seq for one in ledger.of(e.TaskBegun)}

    memory = build_memory(trace, trace.tasks)

    window = range(min(began.values()), max(map(ledger.end_of_pass, began)))
    t_ns = [one.t_ns - memory.origin_ns for one in ledger.events]
    levels = [ledger.at(seq) for seq in window]
    totals = [sum(one.values()) - one["unclaimed"] for one in levels]
    assert memory.peak.use.total == max(totals)
    first = window[totals.index(max(totals))]
    assert memory.peak.after_ns == t_ns[first]
    for use, level in (
        (memory.begin, levels[0]),
        (memory.peak.use, ledger.at(first)),
        (memory.end, levels[-1]),
    ):
        assert {purpose: getattr(use, purpose) for purpose in PURPOSES} == level
    assert len(window) < MAX_POINTS  # so nothing is left out
    for purpose in PURPOSES:
        steps = dict(memory.curves[purpose])
        height, heights = 0, []
        for seq in window:
            height = steps.get(t_ns[seq], height)
            heights.append(height)
        assert heights == [level[purpose] for level in levels]


@pytest.mark.usefixtures("four_devices")
@pytest.mark.parametrize("seed", range(6))
def test_a_part_of_the_time_is_told_as_the_single_events_add_up(seed):
    with record() as recording:
        any_program(seed)
    trace = recording.trace
    ledger = Ledger(trace)
    whole = build_memory(trace, trace.tasks)
    from_ns, until_ns = whole.duration_ns // 3, whole.duration_ns * 2 // 3

    part = build_memory(trace, trace.tasks, from_ns, until_ns)

    after = [one.t_ns - part.origin_ns for one in ledger.events]
    end = max(seq for seq, when in enumerate(after) if when <= until_ns)
    before = max(seq for seq, when in enumerate(after) if when <= from_ns)
    levels = {seq: ledger.at(seq) for seq in range(before, end + 1)}
    totals = [sum(one.values()) - one["unclaimed"] for one in levels.values()]
    assert (part.duration_ns, part.from_ns) == (whole.duration_ns, from_ns)
    assert part.peak.use.total == max(totals)
    assert from_ns <= part.peak.after_ns <= until_ns
    for use, seq in ((part.begin, before), (part.end, end)):
        assert {one: getattr(use, one) for one in PURPOSES} == levels[seq]
    shown = {
        when: dict(zip(PURPOSES, sizes, strict=True)) for when, *sizes in part.stack
    }
    expected = {max(after[seq], from_ns): level for seq, level in levels.items()}
    current = None
    for when, level in expected.items():
        current = shown.get(when, current)
        assert current == level


def test_a_part_that_begins_after_the_end_is_refused(story):
    story.begin(0, [], at=0)
    story.end(0, at=10)

    with pytest.raises(NoSuchMomentError, match="it ends after 10 ns"):
        build_memory(story.trace(), [0], 11)


def test_an_event_after_the_end_of_a_pass_does_not_lengthen_the_pass(story):
    node = story.node(0)
    story.begin(0, [node], at=0)
    story.end(0, at=110)
    story.pop(0, node, at=200)

    memory = build_memory(story.trace(), [0])

    assert (memory.took_ns, memory.duration_ns) == (110, 200)


def test_of_very_many_points_the_highest_and_the_last_of_each_slice_are_told():
    when = np.arange(10 * MAX_POINTS)
    heights = np.where(when % 50 == 7, 1_000 + when % 13, when % 3)
    heights[-1] = 5

    points = thinned(when, heights)

    assert len(points) <= MAX_POINTS
    assert set(points) <= set(zip(when.tolist(), heights.tolist(), strict=True))
    for begin in range(0, len(when), 20):  # of each slice
        own = [height for at, height in points if begin <= at < begin + 20]
        assert max(own) == max(heights[begin : begin + 20])
        assert own[-1] == heights[begin + 19]


@pytest.mark.usefixtures("four_devices")
def test_device_memory_equals_the_figures_of_the_devices_allocator():
    """It gives multiples of 512 bytes; so many are requested."""
    with record() as recording:
        before = sim.memory_allocated(1)
        x = numbers(2, requires_grad=True).to("sim:1")
        y = x.sin() * x
        seed = gv.ones_like(y)
        sim.synchronize(1)
        sim.reset_peak_memory_stats(1)
        begin = sim.memory_allocated(1) - before
        y.backward(seed)
        sim.synchronize(1)
        peak, end = sim.max_memory_allocated(1) - before, sim.memory_allocated(1)

    (device,) = build_memory(recording.trace, recording.trace.tasks).devices

    assert device.device == "sim:1"
    assert (device.begin_bytes, device.peak_bytes) == (begin, peak)
    assert device.end_bytes == end - before


def test_saved_tensors_are_those_that_nodes_have():
    x = numbers(4, requires_grad=True)
    with record() as recording:
        y = (x.sin() * x.exp()).tanh()
        z = (y * y).sum()
        arrays = {}
        waiting, seen = [z.grad_fn], set()
        while waiting:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if saved := getattr(node, "saved", None):
                tensors = [one for one in saved if isinstance(one, Variable)]
                arrays |= {id(one.array): one.array.nbytes for one in tensors}
            waiting += [next_ for next_, _ in node.next_functions]
        z.backward()

    memory = build_memory(recording.trace, recording.trace.tasks)

    del arrays[id(x.array)]  # which holds it anyway
    assert sum(arrays.values()) == memory.begin.saved == 3 * 4 * KIB
    assert memory.saved.parameter_bytes == 4 * KIB
    assert memory.saved.shared_bytes == 3 * 4 * KIB
    assert (memory.end.saved, memory.end.buffers) == (0, 0)
    assert memory.end.gradients == 4 * KIB
    assert memory.end.unclaimed == 0


def test_a_tensor_changed_in_place_before_it_was_saved_counts_as_saved():
    x = numbers(4, requires_grad=True)
    with record() as recording:
        y = x * 1
        y.add_(1)
        y.sin().sum().backward()

    memory = build_memory(recording.trace, recording.trace.tasks)

    assert memory.begin.saved == 4 * KIB


def test_of_what_hooks_have_packed_what_they_made_counts():
    def halved(x):
        return x.detach()[::2].clone()

    def doubled(x):
        return gv.cat([x, x])

    x = numbers(4, requires_grad=True)
    with record() as recording:
        with gv.autograd.graph.saved_tensors_hooks(halved, doubled):
            y = x.sin().exp()  # which saves an input, and a result
        y.sum().backward()

    memory = build_memory(recording.trace, recording.trace.tasks)

    assert memory.begin.saved == 2 * 2 * KIB


def test_a_checkpoint_holds_what_goes_in_and_nothing_more():
    x = numbers(4, requires_grad=True)
    with record() as recording:
        y = gv.utils.checkpoint.checkpoint(
            lambda x: x.sin().exp(), x * 1, use_reentrant=True
        )
        y.sum().backward()

    memory = build_memory(recording.trace, recording.trace.tasks[:1])

    assert memory.begin.saved == 4 * KIB
    assert [one for one in memory.savings if one.means == "checkpoint"] == []


def test_a_graph_that_is_kept_is_held_until_a_pass_releases_it():
    x = numbers(8, requires_grad=True)
    with record() as recording:
        y = x.exp().sum()
        y.backward(retain_graph=True)
        (x * 2).sum().backward()
        y.backward()
    tasks = recording.trace.tasks

    kept, between, released = (build_memory(recording.trace, [one]) for one in tasks)

    assert (kept.begin.saved, kept.end.saved) == (8 * KIB, 8 * KIB)
    assert (between.begin.saved, between.end.saved) == (8 * KIB, 8 * KIB)
    assert (released.begin.saved, released.end.saved) == (8 * KIB, 0)
    (saving,) = [one for one in between.savings if one.means == "no retain_graph"]
    assert (saving.size_bytes, saving.name) == (8 * KIB, "ExpBackward0")
    assert "test_memory_use.py:" in saving.where


def test_a_graph_is_kept_by_the_pass_that_used_it_also_if_no_start_is_there():
    x = numbers(8, requires_grad=True)
    with record(events="!node_started") as recording:
        y = x.exp().sum()
        y.backward(retain_graph=True)
        (x * 2).sum().backward()
        y.backward()

    memory = build_memory(recording.trace, recording.trace.tasks[1:2])

    assert "no retain_graph" in [one.means for one in memory.savings]


def test_a_gradient_that_is_stolen_counts_once():
    x = numbers(8, requires_grad=True)
    with record() as recording:
        (x * 2).sum().backward()

    memory = build_memory(recording.trace, recording.trace.tasks)

    assert memory.end.gradients == 8 * KIB
    assert max(height for _, height in memory.curves["total"]) == 8 * KIB


def test_grad_that_was_there_counts_from_the_begin_and_once_it_is_cleared_no_more():
    x = numbers(8, requires_grad=True)
    (x * 2).sum().backward()
    with record() as recording:
        (x * 2).sum().backward()
        x.grad = None
        (x * 2).sum().backward()
    first, second = recording.trace.tasks

    assert build_memory(recording.trace, [first]).begin.gradients == 8 * KIB
    assert build_memory(recording.trace, [second]).begin.gradients == 0


def test_grad_of_what_a_checkpoint_uses_is_cleared_before_the_whole_step():
    weight = numbers(8, requires_grad=True)
    with record() as recording:
        for _ in range(2):
            weight.grad = None
            x = numbers(8, requires_grad=True)
            checkpoint = gv.utils.checkpoint.checkpoint
            checkpoint(weight.mul, x.sin(), use_reentrant=True).sum().backward()
    first, inner, second, _ = recording.trace.tasks

    held = {task: build_memory(recording.trace, [task]) for task in (first, second)}
    assert inner in held[first].tasks
    assert held[first].end.gradients == 16 * KIB  # those of weight and x
    assert [one.begin.gradients for one in held.values()] == [0, 0]


def test_results_count_until_their_pass_ends():
    x = numbers(8, requires_grad=True)
    with record() as recording:
        gv.autograd.grad((x * 2).sum(), x)
    memory = build_memory(recording.trace, recording.trace.tasks)

    assert (memory.end.results, memory.end.buffers) == (8 * KIB, 0)
    assert memory.end.gradients == 0


def test_memory_unrelated_to_any_pass_is_unclaimed_and_not_in_the_total():
    x = numbers(8, requires_grad=True)
    with record() as recording:
        unused = x.exp()
        (x * 2).sum().backward()
    del unused

    memory = build_memory(recording.trace, recording.trace.tasks)

    assert (memory.begin.unclaimed, memory.begin.total) == (8 * KIB, 0)
    (saving,) = [one for one in memory.savings if one.means == "let go"]
    assert saving.size_bytes == 8 * KIB
    assert "test_memory_use.py:" in saving.where


def test_layers_that_save_much_are_proposed_for_a_checkpoint():
    class Stack(gv.nn.Sequential):
        pass

    model = Stack(gv.nn.Tanh(), gv.nn.Tanh(), gv.nn.Tanh())
    with record() as recording:
        model(numbers(8, requires_grad=True)).sum().backward()

    memory = build_memory(recording.trace, recording.trace.tasks)

    (saving,) = [one for one in memory.savings if one.means == "checkpoint"]
    assert (saving.where, saving.num_nodes) == ("Stack", 3)
    assert saving.size_bytes == memory.peak.use.saved == 24 * KIB
    assert saving.name == "TanhBackward0"


def test_a_gradient_that_waits_is_told_with_what_it_waits_for(story):
    leaf = story.node(1, name="AccumulateGrad")
    slow, root = story.node(2, leaf, name="Slow"), story.node(3, leaf, name="Root")
    story.begin(0, [root, slow, leaf], at=0)
    tell = story.recorder.gradient_buffered
    story.now = 1_010
    tell(0, 1, 3, 0, 1, 500, How.FIRST)
    story.now = 1_090
    tell(0, 1, 2, 0, 0, 500, How.IN_PLACE)
    story.start(0, leaf, at=100)
    story.now = 1_110
    story.recorder.buffer_freed(0, 1, 500)
    story.complete(0, leaf, at=120)
    story.end(0, at=130)

    memory = build_memory(story.trace(), [0])

    (saving,) = memory.savings
    assert (saving.means, saving.size_bytes) == ("earlier dependency", 500)
    assert (saving.node, saving.other, saving.other_name) == (1, 2, "Slow")
    assert saving.after_ns == 80
    assert memory.peak.after_ns == 10
    (holder,) = memory.peak.holders
    assert (holder.since_ns, holder.until_ns) == (10, 90)


def test_a_moment_has_what_the_curve_has_then():
    x = numbers(8, requires_grad=True)
    with record() as recording:
        (x.sin() * x).sum().backward()
    tasks = recording.trace.tasks
    memory = build_memory(recording.trace, tasks)

    for after_ns, total in memory.curves["total"]:
        assert memory_at(recording.trace, tasks, after_ns).use.total == total
    with pytest.raises(NoSuchMomentError, match="there is nothing"):
        memory_at(recording.trace, tasks, 10**15)


def test_nodes_made_before_the_recording_are_counted_as_unknown():
    y = numbers(8, requires_grad=True).sin().sum()
    with record() as recording:
        y.backward()

    memory = build_memory(recording.trace, recording.trace.tasks)

    assert (memory.num_unknown, memory.begin.saved) == (2, None)


def test_a_pass_that_was_cut_holds_what_its_nodes_would_have_used(story):
    leaf = story.node(1, name="AccumulateGrad")
    inner = story.node(2, leaf)
    root = story.node(3, inner)
    for node in (inner, root):
        story.recorder.tensor_saved(node.id, 100)
    story.begin(0, [root, inner, leaf], at=0)
    story.recorder.task_pushed(0, 3, 1, 0, 3, 1, 1, -1, Push.ROOT)
    story.pop(0, root, at=20)

    memory = build_memory(story.trace(), [0])

    assert (memory.end.saved, memory.end.unclaimed) == (200, 0)


def test_the_document_has_all_figures():
    x = numbers(8, requires_grad=True)
    with record() as recording:
        x.exp().sum().backward()
    tasks = recording.trace.tasks

    document = document_of(build_memory(recording.trace, tasks))
    moment = document_of(memory_at(recording.trace, tasks, 0))

    assert (document["schema"], document["version"]) == ("gradviz.memory", 1)
    assert document["peak"]["use"]["saved"] == 8 * KIB
    assert moment["schema"] == "gradviz.memory_moment"
    assert moment["use"]["saved"] == 8 * KIB


def test_one_leaf_that_two_threads_reach_has_one_grad():
    model = gv.nn.Linear(4, 4)
    with record() as recording:
        for _ in range(2):
            thread = threading.Thread(
                target=lambda: model(gv.ones(2, 4)).sum().backward()
            )
            thread.start()
            thread.join()

    memory = build_memory(recording.trace, [[*recording.trace.tasks][-1]])

    gradients = sum(one.grad.nbytes for one in model.parameters())
    assert memory.end.gradients == gradients
