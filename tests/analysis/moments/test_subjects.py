import pytest

from gradviz.analysis.moments.subject_search import find_subject
from gradviz.analysis.moments.subjects import subject_by_id
from gradviz.errors import UserError
from gradviz.trace.format.model import QueueDefinition


@pytest.fixture
def trace(pair):
    story, root, _leaf = pair
    story.recorder.queue_defined(1, "caller 1", -1)
    story.record(3, "sim:0/1", node=root.id)
    return story.trace()


@pytest.mark.parametrize(
    ("text", "kind", "number", "name"),
    [
        ("2", "node", 2, "MulBackward0"),
        ("node 2", "node", 2, "MulBackward0"),
        ("Mul", "node", 2, "MulBackward0"),
        ("node Mul:0", "node", 2, "MulBackward0"),
        ("queue 1", "queue", 1, "caller 1"),
        ("caller 1", "queue", 1, "caller 1"),
        ("queue cpu", "queue", 1, "caller 1"),
        ("cpu", "queue", 1, "caller 1"),
        ("thread 0", "thread", 0, "MainThread"),
        ("MainThread", "thread", 0, "MainThread"),
        ("pass 7", "pass", 7, "pass 7"),
        ("pass last", "pass", 7, "pass 7"),
        ("sim:0/1", "stream", -1, "sim:0/1"),
        (" stream  sim:0/1 ", "stream", -1, "sim:0/1"),
    ],
)
def test_a_thing_is_called_by_its_kind_and_id_or_by_a_name(
    text, kind, number, name, trace
):
    found = find_subject(trace, text)

    assert (found.kind, found.number, found.name) == (kind, number, name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("99", "the trace has no node 99; it has 2, from 1 to 2"),
        ("queue 9", "no queue '9'; it has 1: 'caller 1'"),
        ("queue kaller 1", "Did you mean 'caller 1'?"),
        ("stream sim:0/2", "Did you mean 'sim:0/1'?"),
        ("thread 5", "no thread '5'; it has 1: 'MainThread'"),
        ("pass 8", "no backward pass '8'"),
        ("Mull", "Did you mean 'Mul'?"),
        ("stream", "no node 'stream'"),
    ],
)
def test_an_unknown_subject_is_refused_with_the_nearest_existing_ones(
    text, words, trace
):
    with pytest.raises(UserError) as raised:
        find_subject(trace, text)

    assert words in str(raised.value)
    assert raised.value.exit_code == 2


def test_a_name_of_several_things_names_them(trace):
    trace.queues = {
        **trace.queues,
        4: QueueDefinition(4, "caller 4", -1),
        5: QueueDefinition(5, "MainThread", 0),
    }

    with pytest.raises(UserError, match="means 2 things: 'queue 1', 'queue 4'"):
        find_subject(trace, "cpu")
    with pytest.raises(UserError, match="means 2 things: 'queue 5', 'thread 0'"):
        find_subject(trace, "MainThread")
    assert find_subject(trace, "queue MainThread").number == 5


def test_a_node_is_looked_for_in_the_pass_that_is_asked_for(story):
    first, second = (story.node(number) for number in (1, 2))
    for task, node in enumerate([first, second]):
        story.begin(task, [node], at=100 * task)
        story.ran(task, node, at=100 * task + 10, until=100 * task + 20)
        story.end(task, at=100 * task + 30)

    trace = story.trace()

    assert find_subject(trace, "Mul").number == 2
    assert find_subject(trace, "Mul", "0").number == 1


def test_a_trace_without_streams_says_so(pair):
    with pytest.raises(UserError, match="no stream 'sim:0/0', and no other"):
        find_subject(pair[0].trace(), "stream sim:0/0")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("27", ("node", 27)),
        ("node 27", ("node", 27)),
        ("queue 0", ("queue", 0)),
        ("pass 5", ("pass", 5)),
        ("stream sim:0/1", ("stream", -1)),
        ("pass last", None),
        ("Mul:3", None),
        ("cpu", None),
    ],
)
def test_an_id_means_the_same_in_every_trace(text, meant):
    found = subject_by_id(text)

    assert (found and (found.kind, found.number)) == meant
