"""Gates over pairs of programs whose differences the test has made."""

import pytest

import gradviz as gv
from gradviz import sim
from gradviz.analysis.changes.conditions import (
    CONDITIONS,
    BadConditionError,
    judge,
    parse_conditions,
)
from gradviz.analysis.changes.pass_comparison import compare
from gradviz.capture.session import record
from gradviz.render.words.verdict_text import verdict_text
from tests.analysis.conftest import Story

EVERY = ",".join(CONDITIONS)
#: What a program may be edited in without a change of its backward.
OF_LINES = {"lines", "modules", "parameters"}


def recorded(program, *args, times=1, **options):
    with record(**options) as recording:
        for _ in range(times):
            program(*args)
    return recording.trace


def judged(text, one, other):
    comparison = compare(one, one.tasks[-1], other, other.tasks[-1])
    verdicts = judge(parse_conditions([text]), comparison, one, other)
    for verdict in verdicts:
        assert verdict_text(verdict, comparison.after).startswith(verdict.condition)
    return {verdict.name: verdict for verdict in verdicts}


def failures(one, other, text=EVERY):
    found = judged(text, one, other)
    return {name for name, one in found.items() if one.state == "failed"}


def program(edit=""):
    x = gv.ones((3, 4) if edit == "shape" else (3,), requires_grad=True)
    if edit == "order":
        right = x.cos()
        left = (x * x).sin()
    else:
        left = (x * x).sin()
        right = x.cos()
    if edit == "hook":
        left.register_hook(lambda grad: grad)
    if edit == "sync":
        left.register_hook(lambda grad: sim.synchronize("sim:0"))
    if edit == "node":
        right = right.exp()
    if edit == "edge":
        left, right = left * 1, left
    (left + right).sum().backward()


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ("", set()),
        ("order", {"order"}),
        ("shape", {"shapes", "saved", "memory"}),
        ("hook", {"hooks"}),
        ("sync", {"hooks", "sync"}),
        ("node", {"nodes", "memory"}),
    ],
)
def test_a_change_fails_the_conditions_that_name_it_and_no_others(edit, expected):
    found = failures(recorded(program), recorded(program, edit))

    assert found - OF_LINES == expected


def test_more_passes_or_fewer_fail_that_condition():
    verdicts = judged("passes", recorded(program, times=3), recorded(program, times=5))

    assert verdicts["passes"].state == "failed"
    assert (verdicts["passes"].before, verdicts["passes"].after) == (3, 5)


def held(size):
    gv.ones(size, requires_grad=True).exp().sum().backward()


@pytest.mark.parametrize("name", ["memory", "saved"])
@pytest.mark.parametrize(
    ("size", "limit", "state"),
    [(110, "5%", "failed"), (110, "15%", "passed"), (90, "0%", "passed")],
)
def test_bytes_may_grow_by_their_limit_and_shrink_as_they_like(
    name, size, limit, state
):
    verdict = judged(f"{name}:{limit}", recorded(held, 100), recorded(held, size))[name]

    assert verdict.state == state
    assert verdict.before < verdict.after or size < 100


def timed(*took):
    """A trace of passes whose one node takes so long each."""
    story = Story()
    at = 0
    for task, ns in enumerate(took):
        node = story.node(task, name="SumBackward0")
        story.begin(task, [node], at=at)
        story.ran(task, node, at=at + 10, until=at + 10 + ns)
        story.end(task, at=at + 20 + ns)
        at += 1_000 + ns
    return story.trace()


@pytest.mark.parametrize(
    ("before", "after", "limit", "state"),
    [
        ([1000] * 5, [1300] * 5, "20%", "failed"),
        ([1000] * 5, [1300] * 5, "40%", "passed"),
        ([1000] * 5, [1030] * 5, "2%", "failed"),  # a small limit is taken at its word
        ([1000] * 5, [500] * 5, "20%", "passed"),  # faster is no failure
        ([1000, 1400, 700, 1900], [1500, 2100, 900, 2500], "20%", "passed"),  # noise
        ([800, 1200] * 100, [1050, 1450] * 100, "20%", "passed"),  # of many passes, too
        ([1000] * 5, [9000] * 2, "20%", "undecided"),
        ([1000], [1000] * 9, "20%", "undecided"),
        ([1000] * 5, [1000, 1000, 1000, 90_000], "20%", "passed"),  # a pass is odd
    ],
)
def test_time_fails_beyond_its_limit_and_beyond_noise(before, after, limit, state):
    verdict = judged(f"time:{limit}", timed(*before), timed(*after))["time"]

    assert verdict.state == state
    assert verdict.before is not None
    assert ("too little data" in verdict.reason) == (state == "undecided")


def test_the_time_of_a_pass_that_failed_is_not_judged():
    def failing():
        x = gv.ones(3, requires_grad=True)
        y = x.sin()
        y.register_hook(lambda grad: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            y.sum().backward()

    trace = recorded(failing, times=4)
    verdicts = judged("time,ends", recorded(lambda: held(3), times=4), trace)

    assert verdicts["time"].state == "unknown"
    assert verdicts["ends"].state == "failed"


@pytest.mark.parametrize(
    ("left_out", "name"),
    [
        ("!tensor_saved", "saved"),
        ("!tensor_saved", "memory"),
        ("!hook_called", "hooks"),
        ("!task_pushed", "order"),
        ("!stream_synchronized", "sync"),
    ],
)
def test_a_verdict_on_left_out_events_is_unknown_and_names_them(left_out, name):
    verdict = judged(name, recorded(program), recorded(program, events=left_out))[name]

    assert verdict.state == "unknown"
    assert left_out[1:] in verdict.reason


def test_bytes_saved_before_the_recording_are_unknown():
    loss = gv.ones(3, requires_grad=True).sin().sum()

    verdict = judged("saved", recorded(held, 3), recorded(loss.backward))["saved"]

    assert verdict.state == "unknown"
    assert "does not tell how much 2 nodes saved" in verdict.reason


def test_programs_with_little_in_common_fail_every_condition():
    def chain(op):
        x = gv.ones((3, 3), requires_grad=True)
        for _ in range(12):
            x = op(x)
        x.sum().backward()

    one, other = recorded(chain, lambda x: x.sin()), recorded(chain, lambda x: x @ x)

    assert failures(one, other) == {*CONDITIONS}


def test_a_difference_names_its_nodes_with_what_they_had_and_have():
    verdict = judged("shapes", recorded(program), recorded(program, "shape"))["shapes"]

    first = verdict.examples[0]
    assert (first.was, first.now) == ("float32[3]", "float32[3, 4]")
    assert len(verdict.examples) <= 3 < verdict.after


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["speed"], "no condition 'speed', expected some of order, nodes"),
        ([""], "no condition ''"),
        (["order,"], "no condition ''"),
        (["order:5%"], "order takes no limit"),
        (["time:fast"], "expected a limit in percent, such as time:5%"),
        (["time:20"], "expected a limit in percent"),
        (["time:-1%"], "expected a limit in percent"),
        (["memory:nan%"], "expected a limit in percent"),
        (["time", "order,time:5%"], "time is there twice"),
    ],
)
def test_a_bad_condition_is_one_line_that_says_what_is_expected(texts, words):
    with pytest.raises(BadConditionError) as caught:
        parse_conditions(texts)

    assert words in str(caught.value)
    assert caught.value.exit_code == 2


def test_conditions_are_read_with_their_limits():
    found = parse_conditions(["order, memory:5%", "time:12.5%,saved"])

    assert [(one.name, one.limit) for one in found] == [
        ("order", None),
        ("memory", 0.05),
        ("time", 0.125),
        ("saved", None),
    ]
