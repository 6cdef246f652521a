import statistics
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradviz.analysis.tables.calls import calls
from gradviz.analysis.tables.passes import MAX_PASSES
from gradviz.analysis.training import steps
from gradviz.analysis.training.steps import (
    NoSuchStepError,
    StepParts,
    find_steps,
    median_of,
    select_step,
    select_steps,
)
from gradviz.errors import UserError
from gradviz.trace.reading.reader import parse_trace
from tests.analysis.conftest import START_NS, Story
from tests.cli import bad_files


class Training(Story):
    """A story of steps: each part lasts so long, and the next one follows at once.

    What happens at once is a few nanoseconds apart, so by hand one counts microseconds.
    """

    def __init__(self, unit=1_000):
        super().__init__()
        self.at = 0
        self.unit = unit
        self.num_calls = self.num_nodes = self.num_tasks = self.num_steps = 0

    def step(self):
        self.now = START_NS + self.at
        self.recorder.step_begun(self.num_steps)
        self.num_steps += 1

    def forward(self, took, *, ends=True):
        self._call("forward", took, ("Net", "Net"), ends)

    def optimizer(self, took, *, ends=True, inside=lambda: None):
        self._call("optimizer", took, ("SGD",), ends, inside)

    def _call(self, kind, took, about, ends, inside=lambda: None):
        call, self.num_calls = self.num_calls, self.num_calls + 1
        self.now = START_NS + self.at
        getattr(self.recorder, f"{kind}_begun")(call, *about)
        self.at += took // 2 * self.unit
        inside()
        self.at += (took - took // 2) * self.unit
        self.now = START_NS + self.at
        if ends:
            getattr(self.recorder, f"{kind}_ended")(call, False)

    def backward(self, took, name="MulBackward0", *, outcome="completed"):
        task, self.num_tasks = self.num_tasks, self.num_tasks + 1
        self.now = START_NS + self.at
        node = self.node(self.num_nodes, name=name)
        self.num_nodes += 1
        self.begin(task, [node], at=self.at)
        self.ran(task, node, at=self.at + 2, until=self.at + 3)
        self.at += took * self.unit
        if outcome == "failed":
            self.now = START_NS + self.at
            self.recorder.task_failed(task, node.id, "no")
        elif outcome == "completed":
            self.end(task, at=self.at)

    def other(self, took):
        self.at += took * self.unit


@pytest.fixture
def training():
    return Training()


def parts(step, unit=1_000):
    of = step.parts
    told = (of.forward_ns, of.backward_ns, of.optimizer_ns, of.other_ns)
    assert of.duration_ns == sum(told)
    return tuple(round(one / unit) for one in told)


def test_steps_without_a_word_of_the_program_end_with_the_optimizer(training):
    for load in (0, 50, 70):
        training.other(load)
        training.forward(100)
        training.backward(200)
        training.other(10)
        training.optimizer(30)

    found = find_steps(training.trace())

    assert found.found_by == "shape"
    assert [parts(step) for step in found.steps] == [
        (100, 200, 30, 10),
        (100, 200, 30, 60),
        (100, 200, 30, 80),
    ]
    assert [step.tasks for step in found.steps] == [(0,), (1,), (2,)]
    assert [step.number for step in found.steps] == [0, 1, 2]
    assert {step.status for step in found.steps} == {"completed"}
    assert found.num_outside == 0
    first, second, _ = found.steps
    assert (first.begin_ns, first.end_ns) == (START_NS, second.begin_ns)


def test_steps_are_where_the_program_says_they_begin(training):
    training.backward(20)
    for _ in range(2):
        training.step()
        for _ in range(3):
            training.backward(100)
        training.optimizer(10)
        training.other(5)
    training.other(1_000)

    found = find_steps(training.trace())

    assert found.found_by == "step_begun"
    assert [step.tasks for step in found.steps] == [(1, 2, 3), (4, 5, 6)]
    assert [parts(step) for step in found.steps] == [(0, 300, 10, 5), (0, 300, 10, 0)]
    assert found.num_outside == 1


def test_a_step_after_which_others_were_not_recorded_ends_with_what_it_did(training):
    training.step()
    training.backward(100)
    training.other(5_000)
    training.num_steps = 7
    training.step()
    training.backward(100)

    found = find_steps(training.trace())

    assert [(step.number, parts(step)) for step in found.steps] == [
        (0, (0, 100, 0, 0)),
        (7, (0, 100, 0, 0)),
    ]


def test_passes_of_two_shapes_by_turns_are_one_step(training):
    for _ in range(3):
        training.backward(20, "DivBackward0")
        training.optimizer(5)
        training.backward(30, "MulBackward0")
        training.optimizer(5)

    found = find_steps(training.trace())

    assert [step.tasks for step in found.steps] == [(0, 1), (2, 3), (4, 5)]
    assert [parts(step) for step in found.steps] == [(0, 50, 10, 0)] * 3


@pytest.mark.parametrize(
    ("shapes", "steps"),
    [
        ("AB", ["A", "B"]),
        ("ABCDE", list("ABCDE")),
        ("ABACBACABBC", list("ABACBACABBC")),
        ("XABABABAB", ["X", "AB", "AB", "AB", "AB"]),
        ("AABAABAAB", ["AAB"] * 3),
        ("AAAAAAAAAAAAX", [*"AAAAAAAAAAAA", "X"]),
        ("ABABABABABABABABABABABABABABABABAXABAB", ["AB"] * 16 + ["AX", "AB", "AB"]),
        (
            "ABABABABABABABABABABABABABABABABXABABA",
            ["AB"] * 16 + ["X", "AB", "AB", "A"],
        ),
    ],
)
def test_shapes_that_repeat_make_a_step_and_others_one_each(training, shapes, steps):
    for shape in shapes:
        training.backward(5, f"{shape}Backward0")
    trace = training.trace()

    found = find_steps(trace)

    assert [
        "".join(trace.nodes[task].name[0] for task in step.tasks)
        for step in found.steps
    ] == steps


def test_passes_inside_of_an_optimizer_are_of_one_step(training):
    def closure():
        training.backward(20)
        training.backward(20)

    for _ in range(2):
        training.optimizer(10, inside=closure)
        training.other(7)

    found = find_steps(training.trace())

    assert [step.tasks for step in found.steps] == [(0, 1), (2, 3)]
    assert [parts(step) for step in found.steps] == [(0, 40, 10, 0), (0, 40, 10, 7)]


def test_nested_passes_begin_no_step(story):
    nodes = [story.node(number) for number in range(2)]
    story.begin(0, nodes[:1], at=0)
    story.start(0, nodes[0], at=10)
    story.begin(1, nodes[1:], at=20, parent=0)
    story.ran(1, nodes[1], at=25, until=30)
    story.end(1, at=35)
    story.complete(0, nodes[0], at=40)
    story.end(0, at=50)

    (step,) = find_steps(story.trace()).steps

    assert step.tasks == (0,)


def test_each_thread_has_its_own_steps(training):
    training.backward(100)
    training.on_thread("other", lambda: training.backward(50))
    training.backward(100)
    training.on_thread("another", lambda: training.backward(50))

    found = find_steps(training.trace())

    assert [(step.thread, step.number, step.tasks) for step in found.steps] == [
        (0, 0, (0,)),
        (0, 1, (2,)),
        (1, 0, (1,)),
        (2, 0, (3,)),
    ]


def test_failed_and_unfinished_steps_are_odd_and_left_out_of_the_median(training):
    training.backward(100)
    training.backward(900, outcome="failed")
    training.backward(120)
    training.forward(10, ends=False)
    training.backward(700)
    training.backward(140)

    found = find_steps(training.trace())

    assert [step.status for step in found.steps] == [
        "completed",
        "failed",
        "completed",
        "unfinished",
        "completed",
    ]
    assert [(one.place, one.why) for one in found.odd] == [
        (1, "failed"),
        (3, "unfinished"),
    ]
    assert found.median is not None
    assert round(found.median.backward_ns / 1_000) == 120
    assert found.slowest == 4


@pytest.mark.parametrize(
    ("durations", "odd"),
    [
        ([100, 101, 99, 100, 102, 300], [(5, "slow")]),
        ([100, 101, 99, 100, 102, 20], [(5, "fast")]),
        ([100, 100, 100, 100, 100, 109], []),  # not a tenth
        ([100, 100, 100, 100, 100, 111], [(5, "slow")]),
        ([100, 140, 60, 100, 120, 190], []),  # all differ much
        ([100, 100, 100, 900], []),  # too few
    ],
)
def test_a_step_far_from_the_median_is_odd(training, durations, odd):
    for took in durations:
        training.backward(took)

    found = find_steps(training.trace())

    assert [(one.place, one.why) for one in found.odd] == odd


def test_a_trace_of_no_steps_has_none(story):
    found = find_steps(story.trace())

    assert (found.steps, found.median, found.slowest, found.odd) == ((), None, -1, ())


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_a_median_is_the_middle_one_or_between_the_middle_two(numbers):
    assert median_of(numbers) == int(statistics.median(map(Fraction, numbers)))


def middles(size):
    """Return the ranks of the one or two values whose mean is the median."""
    return (size - 1) // 2, size // 2


SCRIPTS = st.lists(
    st.tuples(
        st.sampled_from(["forward", "backward", "optimizer", "other", "step"]),
        st.integers(4, 40),
        st.sampled_from(["MulBackward0", "DivBackward0"]),
    ),
    max_size=40,
)


def acted(script):
    training = Training(unit=1)
    for what, took, name in script:
        match what:
            case "step":
                training.step()
            case "backward":
                training.backward(took, name)
            case "optimizer" if took % 3 == 0:
                training.optimizer(
                    took, inside=lambda name=name: training.backward(7, name)
                )
            case _:
                getattr(training, what)(took)
    return training.trace()


def spans_by_hand(trace):
    """Return the spans of each part, from the events alone."""
    begun, found = {}, []
    for event in trace.events():
        kind = type(event).__name__.removesuffix("Begun").lower()
        match type(event).__name__:
            case "ForwardBegun" | "OptimizerBegun":
                begun[kind, event.call] = event.t_ns
            case "ForwardEnded" | "OptimizerEnded":
                part = type(event).__name__.removesuffix("Ended").lower()
                found.append((part, begun[part, event.call], event.t_ns))
            case "TaskBegun":
                begun["task", event.task] = event.t_ns
            case "TaskCompleted":
                found.append(("backward", begun["task", event.task], event.t_ns))
    return found


@settings(max_examples=40)
@given(SCRIPTS)
def test_the_parts_of_a_step_are_those_of_each_nanosecond(script):
    trace = acted(script)
    spans = spans_by_hand(trace)
    found = find_steps(trace)

    for step in found.steps:
        counts = {"forward": 0, "backward": 0, "optimizer": 0, "other": 0}
        for moment in range(step.begin_ns, step.end_ns):
            going_on = {part for part, begin, end in spans if begin <= moment < end}
            for part in ("backward", "forward", "optimizer"):
                if part in going_on:
                    counts[part] += 1
                    break
            else:
                counts["other"] += 1
        assert parts(step, unit=1) == (
            counts["forward"],
            counts["backward"],
            counts["optimizer"],
            counts["other"],
        )


@settings(max_examples=40)
@given(SCRIPTS)
def test_every_pass_is_in_one_step_or_outside_of_all(script):
    trace = acted(script)
    found = find_steps(trace)
    begins = {event.task: event.t_ns for event in trace.events() if is_begin(event)}

    inside = [task for step in found.steps for task in step.tasks]
    assert len(inside) == len(set(inside))
    assert found.num_outside == len(begins) - len(inside)
    for step in found.steps:
        for task in step.tasks:
            assert step.begin_ns <= begins[task] <= step.end_ns
    if found.found_by == "shape":
        assert found.num_outside == 0
        for step, following in zip(found.steps, found.steps[1:], strict=False):
            assert step.end_ns == following.begin_ns
    if len(found.steps) > 0 and found.median is not None:
        for name in StepParts.__struct_fields__:
            figures = sorted(getattr(step.parts, name) for step in found.steps)
            low, high = (figures[place] for place in middles(len(figures)))
            assert getattr(found.median, name) == (low + high) // 2


def is_begin(event):
    return type(event).__name__ == "TaskBegun"


def test_a_call_knows_its_thread_its_end_and_whether_it_raised(story):
    def call():
        story.now = START_NS + 10
        story.recorder.forward_begun(1, "Net.a", "Linear")
        story.now = START_NS + 30
        story.recorder.forward_ended(1, True)

    story.now = START_NS
    story.recorder.forward_begun(0, "Net", "Net")
    story.on_thread("other", call)
    trace = story.trace()

    found = calls(trace, "forward")

    assert found.begin_ns.tolist() == [START_NS, START_NS + 10]
    assert found.end_ns.tolist() == [START_NS + 30, START_NS + 30]
    assert found.has_ended.tolist() == [False, True]
    assert found.failed.tolist() == [False, True]
    assert [trace.strings[one] for one in found.module] == ["Net", "Net.a"]
    assert [trace.strings[one] for one in found.name] == ["Net", "Linear"]
    assert found.thread.tolist() == [0, 1]


def test_a_step_is_picked_by_its_number_or_as_last_or_slowest(training):
    for took in (10, 90, 20):
        training.backward(took)
    trace = training.trace()

    picked = [select_step(trace, which) for which in ("0", "last", "slowest", " 1 ")]

    assert [step.number for step in picked] == [0, 2, 1, 1]
    with pytest.raises(NoSuchStepError, match="no step '7'; there are 3, from 0 to 2"):
        select_step(trace, "7")


def test_the_slowest_step_is_the_longest_one_if_none_has_completed(training):
    for took in (10, 90, 20):
        training.backward(took, outcome="failed")

    assert select_step(training.trace(), "slowest").number == 1


def test_a_trace_without_steps_refuses_to_select_one(story):
    with pytest.raises(UserError, match="holds no step"):
        select_step(story.trace(), "last")


def test_several_steps_are_meant_by_a_range_or_by_all(story):
    node = story.node(1)
    for task in range(4):
        story.begin(task, [node], at=100 * task)
        story.end(task, at=100 * task + 50)
    trace = story.trace()

    def numbers(which):
        return [one.number for one in select_steps(trace, which)]

    assert numbers("all") == [0, 1, 2, 3]
    assert numbers("1-2") == [1, 2]
    assert numbers("2-9") == [2, 3]
    assert numbers("last") == [3]
    for none in ("7-9", "2-1", "x-y"):
        with pytest.raises(NoSuchStepError, match="there are 4, from 0 to 3"):
            select_steps(trace, none)


def test_a_trace_without_steps_has_none_to_choose_from(story):
    with pytest.raises(UserError, match="no step"):
        select_steps(story.trace(), "all")


@pytest.mark.parametrize(
    "most", [3_000, pytest.param(MAX_PASSES, marks=pytest.mark.stress)]
)
@pytest.mark.parametrize("has_told_steps", [False, True])
def test_no_step_has_passes_that_nobody_looked_at(has_told_steps, most, monkeypatch):
    monkeypatch.setattr(steps, "MAX_PASSES", most)
    num_passes = most + 100
    begun = [(1, 10), (0, 1), (-1, 0), (-1, 0), *[(0, 0)] * 6]
    blocks = [
        bad_files.regular("task_begun", num_passes, *begun),
        bad_files.regular("task_completed", num_passes, (6, 10), (0, 1), (-1, 0)),
    ]
    if has_told_steps:  # of two passes each
        told = bad_files.regular(
            "step_begun", num_passes // 2, (0, 20), (-1, 0), (-1, 0), (0, 1)
        )
        blocks.insert(0, told)
    trace = parse_trace(bad_files.HEADER + bad_files.events(*blocks) + bad_files.CLOSED)

    found = find_steps(trace)
    passes_of_steps = [len(one.tasks) for one in found.steps]

    assert found.num_unseen == 100
    assert {*passes_of_steps} == {2 if has_told_steps else 1}
    assert sum(passes_of_steps) >= most - 4
    if has_told_steps:
        assert select_step(trace, "7") == found.steps[7]
        with pytest.raises(NoSuchStepError, match="and 100 more follow"):
            select_step(trace, "70000")
    else:
        with pytest.raises(UserError, match=f"the first {most:,} passes, and 100 more"):
            select_step(trace, "slowest")
