"""Recordings that keep less than everything: of steps, of kinds of events, of nodes."""

import threading

import numpy as np
import pytest

import gradviz as gv
from gradviz.analysis.findings.check import check_trace
from gradviz.analysis.races.stream_order import stream_order
from gradviz.capture.session import record
from gradviz.engine import Edge, Engine, Node
from gradviz.errors import UserError
from gradviz.trace import probe
from gradviz.trace.checking.lifecycle import judge
from gradviz.trace.events import (
    KINDS,
    Mark,
    NodeStarted,
    StackTaken,
    StepBegun,
    TaskBegun,
    kind_name,
)
from gradviz.trace.format.kept_events import ALWAYS_KEPT
from gradviz.trace.reading.reader import load_trace


class Pass(Node):
    def apply(self, grad):
        return (grad,) * len(self.next_edges)


class Calls(Node):
    """Calls a function of the test when it runs."""

    def __init__(self, edges=(), *, function):
        super().__init__(edges)
        self.function = function

    def apply(self, grad):
        self.function()
        return (grad,) * len(self.next_edges)


def backward(length=2):
    node = Pass()
    for _ in range(length - 1):
        node = Pass([Edge(node)])
    Engine().execute([Edge(node)], [np.ones(2)])


def steps(recording):
    """The steps of a trace, and how many passes each has."""
    passes = {}
    for event in recording.events():
        if isinstance(event, StepBegun):
            passes[event.step] = 0
        elif isinstance(event, TaskBegun):
            passes[max(passes)] += 1
    return passes


def kinds(recording):
    return {kind_name(type(event)) for event in recording.events()}


class TestSchedule:
    @pytest.mark.parametrize("is_first", [True, False])
    def test_only_active_steps_are_in_the_trace_wherever_step_is_called(self, is_first):
        wanted = gv.schedule(wait=1, warmup=1, active=2, repeat=2)
        with record(schedule=wanted) as recording:
            for step in range(12):
                if is_first:
                    recording.step()
                for _ in range(step + 1):
                    backward()
                if not is_first:
                    recording.step()

        assert steps(recording) == {2: 3, 3: 4, 6: 7, 7: 8}
        assert recording.trace.losses.is_complete

    def test_a_step_that_is_active_from_the_beginning_is_step_0(self):
        with record(schedule=gv.schedule(active=1, repeat=1)) as recording:
            backward()
            recording.step()
            backward()

        assert steps(recording) == {0: 1}

    def test_nobody_listens_while_it_waits(self):
        with record(schedule=gv.schedule(wait=2, warmup=1, active=1)) as recording:
            backward()
            recording.step()
            assert probe.current is None
            recording.step()
            assert probe.current is not None
        assert probe.current is None

    def test_a_pass_that_is_under_way_when_recording_begins_is_not_there(self):
        with record(schedule=gv.schedule(warmup=1, active=1)) as recording:
            node = Calls([Edge(Pass())], function=recording.step)
            Engine().execute([Edge(node)], [np.ones(2)])
            backward()

        assert len(recording.trace.tasks) == 1
        assert not any(event.node == node.id for event in recording.events())

    def test_a_pass_that_is_under_way_when_recording_ends_is_there_as_a_whole(self):
        last = Pass()
        with record(schedule=gv.schedule(active=1, repeat=1)) as recording:
            node = Calls([Edge(last)], function=recording.step)
            Engine().execute([Edge(node)], [np.ones(2)])
            backward()

        assert len(recording.trace.tasks) == 1
        assert last.id in [
            one.node for one in recording.events() if isinstance(one, NodeStarted)
        ]
        assert judge(recording.trace).violations == ()

    def test_marks_in_inactive_steps_are_not_kept(self):
        with record(schedule=gv.schedule(wait=1, active=1)) as recording:
            for step in range(4):
                recording.step()
                recording.mark(f"{step}")

        texts = [one.text for one in recording.events() if isinstance(one, Mark)]
        assert texts == ["1", "3"]

    def test_the_file_says_which_steps_it_holds(self, tmp_path):
        wanted = gv.schedule(wait=1, active=1)
        with record(tmp_path / "x.gvt", schedule=wanted):
            backward()

        assert load_trace(tmp_path / "x.gvt").header.scope.schedule == wanted

    def test_the_order_of_streams_is_not_judged_across_gaps(self):
        with record(schedule=gv.schedule(wait=1, active=1)) as recording:
            backward()
            recording.step()
            backward()

        check = check_trace(recording.trace)
        assert check.is_fine
        assert not check.judges_streams


class TestEvents:
    def test_only_the_kinds_asked_for_are_recorded(self):
        with record(events=["node_*", "queue_waited"]) as recording:
            backward(5)

        wanted = {"node_started", "node_completed", "node_created"}
        assert wanted <= kinds(recording) <= wanted | ALWAYS_KEPT | {"queue_waited"}
        assert recording.counts.events == recording.trace.num_events

    @pytest.mark.parametrize(
        "kind", sorted({*map(kind_name, KINDS.values())} - ALWAYS_KEPT)
    )
    def test_a_recording_without_one_kind_has_all_other_events_of_a_whole_one(
        self, kind
    ):
        with record() as whole, record(events=f"!{kind}") as recording:
            backward(3)

        def rows(one):
            return [
                (kind_name(type(event)), event.task, event.node)
                for event in one.events()
                if event.task >= 0
            ]

        assert rows(recording) == [row for row in rows(whole) if row[0] != kind]
        assert check_trace(recording.trace).is_fine

    def test_a_filtered_trace_is_no_damaged_one_and_says_what_it_lacks(self, tmp_path):
        with record(tmp_path / "x.gvt", events="!task_p*"):
            backward()

        check = check_trace(load_trace(tmp_path / "x.gvt"))
        assert check.is_fine
        assert check.left_out == ("no events task_pushed, task_popped",)

    def test_races_are_not_looked_for_without_waits(self):
        with record(events="!stream_waited") as recording:
            backward()

        assert not check_trace(recording.trace).judges_streams
        assert not stream_order(recording.trace).races


class TestOnly:
    def net(self):
        return gv.nn.Sequential(
            gv.nn.Sequential(gv.nn.Linear(2, 2), gv.nn.Tanh()), gv.nn.Linear(2, 1)
        )

    def test_of_the_other_nodes_there_are_definitions_and_no_events(self):
        with record(only="0") as recording:
            self.net()(gv.ones(3, 2)).sum().backward()

        trace = recording.trace
        about = {event.node for event in trace.events() if event.node >= 0}
        modules = {trace.nodes[node].module for node in about}
        assert {module.partition(".")[2] for module in modules} == {"0.0", "0.1"}
        assert "SumBackward0" in {trace.nodes[node].name for node in trace.nodes}
        assert check_trace(trace).is_fine

    def test_a_wanted_node_has_all_its_events(self):
        with record() as whole, record(only="Tanh*") as recording:
            self.net()(gv.ones(3, 2)).sum().backward()

        trace = whole.trace
        (tanh,) = {one for one in trace.nodes if trace.nodes[one].name[:4] == "Tanh"}
        assert [
            kind_name(type(one)) for one in recording.events() if one.node == tanh
        ] == [kind_name(type(one)) for one in trace.events() if one.node == tanh]

    def test_nodes_made_before_the_recording_are_known_when_their_pass_begins(self):
        loss = self.net()(gv.ones(3, 2)).sum()
        with record(only="TanhBackward0") as recording:
            loss.backward()

        started = [one for one in recording.events() if isinstance(one, NodeStarted)]
        assert len(started) == 1

    def test_it_goes_together_with_kinds(self):
        with record(only="Tanh*", events="node_*") as recording:
            self.net()(gv.ones(3, 2)).sum().backward()

        about = [kind_name(type(one)) for one in recording.events() if one.node >= 0]
        assert about == ["node_created", "node_started", "node_completed"]


def test_without_stacks_no_node_has_a_line():
    with record(stacks="none") as recording:
        backward()

    trace = recording.trace
    assert {trace.nodes[one].location for one in trace.nodes} == {""}


def test_full_stacks_lead_from_the_line_that_made_a_node_to_the_programs_first():
    def inner():
        return Pass()

    def outer():
        return inner()

    lines = [inner.__code__.co_firstlineno + 1, outer.__code__.co_firstlineno + 1]
    with record(stacks="full") as recording:
        node = outer()
        Engine().execute([Edge(node)], [np.ones(2)])

    (taken,) = [one for one in recording.events() if isinstance(one, StackTaken)]
    assert taken.node == node.id
    assert taken.stack.startswith(
        " < ".join(f"{__file__}:{line}" for line in (*lines, max(lines) + 4)) + " < "
    )
    assert recording.trace.nodes[node.id].location == f"{__file__}:{lines[0]}"


def test_a_ring_keeps_the_stacks_of_its_nodes(monkeypatch):
    monkeypatch.setattr("gradviz.trace.recording.rings.ring._FEW", 5)
    with record(ring="10 kB", stacks="full") as recording:
        for number in range(300):
            recording.mark(f"{number}")
            backward()

    stacks = [one.stack for one in recording.events() if isinstance(one, StackTaken)]
    assert len(stacks) > 10
    assert all(stack.startswith(__file__) for stack in stacks)


def test_recordings_that_overlap_have_each_what_is_theirs():
    with record() as whole:
        with record(events="node_*") as of_nodes:
            backward(2)
            scheduled = record(schedule=gv.schedule(wait=1, active=1))
            for _ in range(4):
                backward(3)
                scheduled.step()
            scheduled.close()
        backward(4)

    assert len(whole.trace.tasks) == 6
    assert len(of_nodes.trace.tasks) == 5
    assert steps(scheduled) == {1: 1, 3: 1}
    assert "task_pushed" in kinds(whole)
    assert "task_pushed" not in kinds(of_nodes)
    assert "task_pushed" in kinds(scheduled)


def test_recordings_of_several_threads_at_once_have_each_what_is_theirs():
    outside = record()
    recordings = {}
    both_open = threading.Barrier(3)

    def work(name, **asked):
        with record(**asked) as recording:
            both_open.wait()
            for _ in range(3):
                backward(3)
                recording.step()
            both_open.wait()
        recordings[name] = recording

    threads = [
        threading.Thread(target=work, args=("all",)),
        threading.Thread(target=work, args=("some",), kwargs={"events": "task_*"}),
        threading.Thread(
            target=work,
            args=("later",),
            kwargs={"schedule": gv.schedule(wait=1, active=1, repeat=1)},
        ),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outside.close()

    assert len(outside.trace.tasks) == len(recordings["all"].trace.tasks) == 9
    assert len(recordings["some"].trace.tasks) == 9
    assert "node_started" not in kinds(recordings["some"])
    assert list(steps(recordings["later"])) == [1]
    for recording in (outside, *recordings.values()):
        assert judge(recording.trace).violations == ()


class TestOddSteps:
    def test_few_of_many_steps_are_in_the_file(self, tmp_path):
        with record(tmp_path / "x.gvt", keep_odd=1) as recording:
            for _ in range(40):
                backward()
                recording.step()
        trace = load_trace(tmp_path / "x.gvt")

        assert 0 in steps(recording)
        assert len(trace.tasks) <= 3
        assert judge(trace).violations == ()
        assert trace.losses.is_complete
        assert trace.header.scope.kept_steps.total == 40

    def test_a_program_that_is_killed_leaves_the_file_of_a_while_ago(
        self, tmp_path, monkeypatch
    ):
        monkeypatch.setattr("gradviz.capture.flight_recorder._REFRESH_NS", 0)
        monkeypatch.setattr("gradviz.capture.flight_recorder._REFRESH_FACTOR", 0)
        with record(tmp_path / "x.gvt", keep_odd=5) as recording:
            for _ in range(3):
                backward()
                recording.step()
            left = load_trace(tmp_path / "x.gvt")
            backward()
        trace = load_trace(tmp_path / "x.gvt")

        assert len(left.tasks) == 3
        assert trace.tasks[:-1] == left.tasks  # and what came last

    def test_no_file_is_written_before_its_reason(self, tmp_path, monkeypatch):
        monkeypatch.setattr("gradviz.capture.flight_recorder._REFRESH_NS", 0)
        path = tmp_path / "x.gvt"
        with record(path, keep_odd=1, dump_on=["exception"]) as recording:
            backward()
            recording.step()

        assert not path.exists()

    def test_threads_of_the_engine_go_on_from_step_to_step(self, tmp_path):
        x = gv.ones(3, requires_grad=True, device="sim:0")
        with record(tmp_path / "x.gvt", keep_odd=2) as recording:
            for _ in range(30):
                (x * x).sum().backward()
                recording.step()
        check = check_trace(recording.trace)

        assert check.num_passes <= 5
        assert check.violations == ()

    @pytest.mark.parametrize("wrong", [0, -1, 1001, True, "3"])
    def test_an_invalid_number_of_odd_steps_is_refused(self, wrong):
        with pytest.raises(UserError, match="keep_odd is"):
            record(keep_odd=wrong)

    def test_a_schedule_leaves_out_what_would_be_compared(self):
        with pytest.raises(UserError, match="leave one of the two"):
            record(keep_odd=1, schedule=gv.schedule(active=1))
