import enum

import pytest

from gradviz.render.words.event_words import EventWords
from gradviz.trace.events import KINDS, MAX_SEQUENCE_NR, own_columns
from gradviz.trace.probe import Hook, How, Push, Role, Skip
from tests.analysis.conftest import Story
from tests.hostile.texts import HOSTILE

FIRST = {int: 3, bool: True, str: "some"}


@pytest.fixture
def words():
    story = Story()
    leaf = story.node(1, name="AccumulateGrad")
    story.begin(7, [story.node(2, leaf), leaf], at=0)
    story.recorder.queue_defined(1, "device 0", 0)
    story.recorder.queue_defined(4, "CPU of MainThread (inferred)", -1)
    return EventWords(story.trace(), 0)


def make(kind, **changes):
    """An event of a kind, whatever it is."""
    fields = {
        one.name: next(iter(one.type))
        if issubclass(one.type, enum.Enum)
        else FIRST[one.type]
        for one in own_columns(kind)
    }
    common = {"seq": 0, "t_ns": 0, "thread": 0, "task": 7, "node": 2}
    return kind(**(common | fields | changes))


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.__name__)
def test_every_kind_is_a_sentence_whatever_it_tells_of(kind, words):
    enums = {
        one.name: one.type
        for one in own_columns(kind)
        if issubclass(one.type, enum.Enum)
    }
    every = [
        make(kind, **{name: member})
        for name, members in enums.items()
        for member in members
    ]
    ids = {one.name: -1 for one in own_columns(kind) if one.type is int}

    for event in [make(kind), make(kind, task=-1, node=-1, **ids), *every]:
        sentence = words.sentence(event)
        assert len(sentence.split()) > 1
        assert "{" not in sentence
        assert "<" not in sentence


def says(words, called, **fields):
    kind = next(one for one in KINDS.values() if one.__name__ == called)
    return words.sentence(make(kind, **fields))


def test_numbers_are_names(words):
    pushed = says(
        words, "TaskPushed", queue=1, queue_length=2, pushed_by=1, what=Push.NODE
    )

    assert pushed == (
        "MulBackward0 (2) entered queue 1 (device 0), pushed by AccumulateGrad (1); "
        "2 tasks there."
    )
    assert "? (99)" in says(words, "NodeStarted", node=99)
    assert "queue 8 (?)" in says(words, "TaskPopped", queue=8)


def test_an_event_says_once_that_it_and_its_queue_were_inferred(words):
    popped = says(words, "TaskPopped", queue=4, queue_length=0, inferred=True)

    assert popped == (
        "MulBackward0 (2) left queue 4 (CPU of MainThread); 0 tasks there. (inferred)"
    )


@pytest.mark.parametrize(
    ("name", "fields", "words_of_it"),
    [
        ("TaskPushed", {"what": Push.ROOT, "pushed_by": -1}, "as a root;"),
        ("TaskPushed", {"what": Push.WAKE_UP, "node": -1}, "A wake-up for pass 7"),
        (
            "TaskBegun",
            {"parent": -1, "num_outputs": 0, "location": ""},
            "Pass 7 began: 3",
        ),
        (
            "TaskBegun",
            {"parent": 4, "location": "/a/b.py:3"},
            "began at b.py:3 inside pass 4",
        ),
        ("TaskFailed", {"node": -1, "error": "no"}, "Pass 7 failed: no"),
        ("TaskFailed", {"error": "no"}, "Pass 7 failed in MulBackward0 (2): no"),
        (
            "GradientBuffered",
            {"producer": -1, "remaining": 0},
            "from the caller; it was the last",
        ),
        (
            "GradientBuffered",
            {"remaining": 2, "how": How.IN_PLACE},
            "in place; 2 more to come",
        ),
        ("NodeCreated", {"sequence_nr": MAX_SEQUENCE_NR}, "sequence_nr max."),
        ("QueueWaited", {"waited_ns": 1_500}, "after 1.5 µs"),
        ("StreamWaited", {"node": -1, "location": ""}, "some waits for event 3."),
        ("MemoryFreed", {"stream": ""}, "of the host was freed"),
        ("ThreadStarted", {"role": Role.DEVICE, "device": 0}, "to work for device 0."),
        (
            "ThreadStarted",
            {"role": Role.CALLER, "device": -1},
            "as the caller of a backward.",
        ),
        ("NodeSkipped", {"reason": Skip.ERROR}, "its pass had failed"),
        ("HookCalled", {"hook": Hook.PRE}, "a pre-hook, number 3"),
        ("ArrayAccessed", {"writes": False}, "Kernel 3 reads memory 3"),
        (
            "KernelRan",
            {"began_ns": 1_000_000, "ended_ns": 2_000_001},
            "1.000000 ms to 2.000001",
        ),
    ],
)
def test_an_event_text_leaves_out_absent_fields(name, fields, words_of_it, words):
    assert words_of_it in says(words, name, **fields)


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_a_trace_are_shown_and_do_nothing(text, words):
    for name in ("Mark", "TaskFailed", "KernelLaunched", "StreamNamed", "HostAccessed"):
        kind = next(one for one in KINDS.values() if one.__name__ == name)
        texts = {one.name: text for one in own_columns(kind) if one.type is str}

        sentence = says(words, name, **texts)

        assert sentence.isprintable()
        assert "\n" not in sentence


@pytest.mark.parametrize(
    ("t_ns", "text"),
    [
        (0, "0.000000"),
        (1, "0.000001"),
        (-2_500_000, "-2.500000"),
        (10**10, "10,000.000000"),
    ],
)
def test_times_are_told_to_the_nanosecond(t_ns, text, words):
    assert words.time(t_ns) == text
