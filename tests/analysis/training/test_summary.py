import msgspec
import pytest

from gradviz.analysis.training.summary import summarize, summary_document


def test_totals_count_what_is_in_the_trace(pair):
    story, _, _ = pair
    trace = story.trace()

    summary = summarize(trace)

    assert (summary.num_runs, summary.num_nodes) == (2, 2)
    assert summary.num_edges == 1
    assert summary.num_events == trace.num_events
    assert summary.events["node_started"] == 2
    assert "task_failed" not in summary.events
    assert summary.losses.is_complete


def test_duration_is_from_the_first_event_to_the_last(pair):
    story, _, _ = pair

    assert summarize(story.trace(), [7]).duration_ns == 100


def test_a_pass_has_its_own_figures(pair):
    story, root, _ = pair
    story.begin(8, [root], at=2_000)
    story.ran(8, root, at=2_010, until=2_020)
    story.fail(8, root, "ValueError: no", at=2_030)

    first, second = summarize(story.trace()).passes

    assert (first.task, first.runs, first.edges, first.duration_ns) == (7, 2, 1, 100)
    assert (first.status, first.error) == ("completed", "")
    assert (second.status, second.error) == ("failed", "ValueError: no")


def test_only_the_chosen_passes_are_counted(pair):
    story, root, _ = pair
    story.begin(8, [root], at=2_000)
    story.ran(8, root, at=2_010, until=2_020)
    story.end(8, at=2_030)

    summary = summarize(story.trace(), [8])

    assert summary.num_nodes == 1
    assert [one.task for one in summary.passes] == [8]
    assert summary.events["task_begun"] == 1


def test_busy_time_of_a_thread_counts_nested_nodes_once(story):
    outer, inner = story.node(1), story.node(2)
    story.begin(0, [outer], at=0)
    story.start(0, outer, at=10)
    story.begin(1, [inner], at=20, parent=0)
    story.ran(1, inner, at=30, until=40)
    story.end(1, at=50)
    story.complete(0, outer, at=60)
    story.end(0, at=70)

    (thread,) = summarize(story.trace()).threads

    assert (thread.runs, thread.busy_ns) == (2, 50)


def test_names_and_nodes_that_took_longest_come_first(pair):
    story, _, _ = pair

    summary = summarize(story.trace())

    assert [(one.name, one.total_ns) for one in summary.names] == [
        ("MulBackward0", 60),
        ("AccumulateGrad", 5),
    ]
    assert [(one.node, one.duration_ns) for one in summary.longest] == [(2, 60), (1, 5)]


def test_a_trace_without_a_backward_has_a_summary(story):
    summary = summarize(story.trace())

    assert (summary.num_nodes, summary.passes, summary.duration_ns) == (0, (), 0)


def test_the_document_is_the_summary_as_json(pair):
    story, _, _ = pair

    document = summary_document(story.trace())

    assert (document["schema"], document["version"]) == ("gradviz.summary", 1)
    assert document["passes"][0]["task"] == 7
    assert msgspec.json.decode(msgspec.json.encode(document))["num_nodes"] == 2


def test_the_longest_nodes_say_what_their_threads_lost(timed):
    timed.begin(1, [], at=timed.now)
    timed.started(1, 5)
    timed.runs(0.2)
    timed.loses(3)
    timed.recorder.node_completed(1, 5)

    (node,) = summarize(timed.trace()).longest

    assert node.thread_time_ns == pytest.approx(200_000, abs=50)
    assert node.processor_wait_ns == pytest.approx(3_000_000, abs=50)


def test_a_node_that_ran_in_two_passes_is_one_node_and_two_runs(story):
    node = story.node(1, name="MulBackward0")
    for task in (0, 1):
        story.begin(task, [node], at=10 * task)
        story.ran(task, node, at=10 * task + 2, until=10 * task + 5)
        story.end(task, at=10 * task + 9)

    summary = summarize(story.trace())

    assert (summary.num_runs, summary.num_nodes) == (2, 1)
    assert [one.runs for one in summary.passes] == [1, 1]
    assert [one.runs for one in summary.threads] == [2]
    assert [one.runs for one in summary.names] == [2]


def test_a_pass_says_which_line_called_for_it(story):
    story.begin(1, [], at=0)
    story.end(1, at=10)

    (one,) = summarize(story.trace()).passes

    assert "reports.py:" in one.location  # where the story reports it
