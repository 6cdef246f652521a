"""Events derived from the observed behavior of PyTorch's engine."""

import itertools

from gradviz.analysis.findings.check import check_trace
from gradviz.pytorch.reconstruction.watched_pass import WatchedPass
from gradviz.trace import events as e
from gradviz.trace.probe import How, Probe, Push
from tests.pytorch.conftest import Seen, graph, leaf, node

#: The operating system's number of no thread that there is.
ELSEWHERE = -7


def violations(told):
    return check_trace(told.trace()).history.violations


def of_kind(told, *kinds):
    return [(type(one), one.node) for one in told.events(*kinds)]


def test_observed_events_are_marked_as_seen_and_derived_ones_as_inferred(pytorch):
    end = leaf()
    root = node("Sin", 5, end)
    one = pytorch.begin(graph(root), 100, 200)
    pytorch.saw((root, 110, 120), (end, 130, 140))

    events = pytorch.events()
    assert [(type(event), event.node, event.inferred) for event in events] == [
        (e.TaskBegun, -1, False),
        (e.DependenciesCounted, -1, False),
        (e.ThreadStarted, -1, False),
        (e.TaskPushed, root.id, True),
        (e.TaskPopped, root.id, True),
        (e.NodeStarted, root.id, False),
        (e.BufferFreed, root.id, True),
        (e.GradientBuffered, end.id, True),
        (e.TaskPushed, end.id, True),
        (e.NodeCompleted, root.id, False),
        (e.TaskPopped, end.id, True),
        (e.NodeStarted, end.id, False),
        (e.GradientAccumulated, end.id, True),
        (e.BufferFreed, end.id, True),
        (e.NodeCompleted, end.id, False),
        (e.TaskCompleted, -1, False),
        (e.ThreadExited, -1, False),
    ]
    assert {event.task for event in events} == {one.task, -1}
    assert all(a.t_ns < b.t_ns for a, b in itertools.pairwise(events))
    (buffered,) = pytorch.events(e.GradientBuffered)
    assert (buffered.producer, buffered.remaining) == (root.id, 0)
    assert (buffered.size_bytes, buffered.how) == (8, How.UNKNOWN)
    pushed = pytorch.events(e.TaskPushed)
    assert [(one.what, one.pushed_by, one.outstanding) for one in pushed] == [
        (Push.ROOT, -1, 1),
        (Push.NODE, root.id, 1),
    ]
    assert violations(pytorch) == ()


def test_a_node_is_pushed_with_its_last_gradient(pytorch):
    end = leaf()
    sides = [node("Sin", 2, end), node("Cos", 1, end)]
    root = node("Add", 3, *sides)
    pytorch.begin(graph(root), 100, 900)
    order = (root, *sides, end)
    pytorch.saw(*((one, 10 * nr, 10 * nr + 5) for nr, one in enumerate(order, 11)))

    found = pytorch.events(e.GradientBuffered)
    assert [one.remaining for one in found if one.node == end.id] == [1, 0]
    (pushed,) = [one for one in pytorch.events(e.TaskPushed) if one.node == end.id]
    assert pushed.pushed_by == sides[1].id
    assert violations(pytorch) == ()


def test_a_node_that_runs_before_its_turn_is_reported(pytorch):
    sides = node("Sin", 1, leaf()), node("Cos", 2, leaf())
    root = node("Add", 3, *sides)
    ends = [one.next_edges[0].node for one in sides]
    pytorch.begin(graph(root), 100, 900)
    pytorch.saw(
        (root, 110, 120),
        (sides[0], 130, 140),
        (ends[0], 150, 160),
        (sides[1], 170, 180),
        (ends[1], 190, 200),
    )

    (doubt,) = pytorch.events(e.Unexplained)
    assert (doubt.node, doubt.text) == (sides[0].id, "it ran before Cos")
    assert violations(pytorch) == ()


def test_a_node_that_runs_without_being_ready_is_reported(pytorch):
    last = node("Sin", 1)
    root = node("Add", 3, last)
    pytorch.begin(graph(root), 100, 900)
    pytorch.saw((last, 110, 120), (root, 130, 140))

    (doubt,) = pytorch.events(e.Unexplained)
    assert (doubt.node, doubt.text) == (last.id, "it ran before Add, and was not ready")


def test_a_node_in_no_known_graph_is_reported(pytorch):
    root, stranger = node("Add", 3), node("Stranger", 9)
    pytorch.begin(graph(root), 100, 900)
    pytorch.saw((root, 110, 120), (stranger, 130, 140))

    (doubt,) = pytorch.events(e.Unexplained)
    assert doubt.text == "Stranger ran, and is in no graph that is known"
    assert of_kind(pytorch, e.NodeStarted) == [(e.NodeStarted, root.id)]


def test_nodes_that_did_not_run_are_reported(pytorch):
    others = [node(f"Sin{number}", number) for number in range(5)]
    root = node("Add", 9, *others)
    pytorch.begin(graph(root), 100, 900)
    pytorch.saw((root, 110, 120))

    (doubt,) = pytorch.events(e.Unexplained)
    assert doubt.text == "not seen to run: Sin0, Sin1, Sin2 and 2 more"


def test_a_node_that_is_only_asked_for_is_taken_and_runs_nothing(pytorch):
    end = leaf()
    middle = node("Sin", 2, end)
    root = node("Add", 3, middle)
    pytorch.begin(graph(root, middle), 100, 900, accumulates=False)
    pytorch.saw((root, 110, 120))

    (taken,) = pytorch.events(e.CaptureTaken)
    assert (taken.node, taken.output_index, taken.inferred) == (middle.id, 0, True)
    started = pytorch.events(e.NodeStarted)
    assert [(one.node, one.inferred) for one in started] == [
        (root.id, False),
        (middle.id, True),
    ]
    assert pytorch.events(e.Unexplained) == []
    assert violations(pytorch) == ()


def test_a_pass_inside_of_a_node_shares_its_queue(pytorch):
    end, inner = leaf(), leaf()
    middle = node("Function", 2, end)
    root, inside = node("Add", 3, middle), node("Inside", 9, inner)
    outer = pytorch.begin(graph(root), 100, 900)
    pytorch.begin(graph(inside), 210, 290, parent=outer)
    pytorch.saw(
        (root, 110, 120),
        (middle, 200, 300),
        (inside, 220, 230),
        (inner, 240, 250),
        (end, 400, 410),
    )

    assert len({one.queue for one in pytorch.events(e.TaskPushed)}) == 1
    order = [one.node for one in pytorch.events(e.NodeStarted)]
    assert order == [one.id for one in (root, middle, inside, inner, end)]
    assert pytorch.events(e.Unexplained) == []
    assert violations(pytorch) == ()


def test_a_node_that_another_node_calls_is_part_of_it(pytorch):
    end = leaf()
    slices = node("CopySlices", 2, end)
    root, change = node("Add", 3, slices), node("Fill", 1)
    pytorch.begin(graph(root), 100, 900)
    pytorch.saw(
        (root, 110, 120), (slices, 130, 200), (change, 140, 150), (end, 210, 220)
    )

    order = [one.node for one in pytorch.events(e.NodeStarted)]
    assert order == [one.id for one in (root, slices, end)]
    assert pytorch.events(e.Unexplained) == []
    assert violations(pytorch) == ()


def test_a_pass_lies_inside_of_its_node_though_the_clocks_differ(pytorch):
    middle, inside = node("Function", 2), node("Inside", 9)
    outer = pytorch.begin(graph(middle), 100, 900)
    pytorch.begin(graph(inside), 195, 302, parent=outer)  # as if before, and after
    pytorch.saw((middle, 200, 310), (inside, 220, 230))

    kinds = (e.NodeStarted, e.ReentrantEntered, e.ReentrantLeft, e.NodeCompleted)
    assert [(type(one), one.task == outer.task) for one in pytorch.events(*kinds)] == [
        (e.NodeStarted, True),
        (e.ReentrantEntered, False),
        (e.NodeStarted, False),
        (e.NodeCompleted, False),
        (e.ReentrantLeft, False),
        (e.NodeCompleted, True),
    ]
    assert pytorch.events(e.Unexplained) == []


def test_the_node_that_was_last_failed_with_its_pass(pytorch):
    end = leaf()
    bad = node("Bad", 2, end)
    root = node("Add", 3, bad)
    pytorch.begin(graph(root), 100, 900, error="ValueError: no")
    pytorch.saw((root, 110, 120), (bad, 130, 140))

    (failed,) = pytorch.events(e.NodeFailed)
    (ended,) = pytorch.events(e.TaskFailed)
    assert (failed.node, ended.node) == (bad.id, bad.id)
    assert ended.error == "ValueError: no"
    assert of_kind(pytorch, e.NodeCompleted) == [(e.NodeCompleted, root.id)]
    assert violations(pytorch) == ()


def test_a_failed_hook_leaves_the_gradients_of_the_last_node_unknown(pytorch):
    last = node("Sin", 1)
    root = node("Add", 3, last)
    one = pytorch.begin(graph(root), 100, 900, error="ValueError: no")
    one.fails_in_node = False
    pytorch.saw((root, 110, 120))

    assert of_kind(pytorch, e.NodeCompleted) == [(e.NodeCompleted, root.id)]
    assert pytorch.events(e.GradientBuffered, e.NodeFailed) == []
    (failed,) = pytorch.events(e.TaskFailed)
    assert failed.node == -1


def test_tasks_that_a_failed_pass_left_are_thrown_away(pytorch):
    bad, other = node("Bad", 5), node("Sin", 4)
    pytorch.begin(graph(node("Add", 6, bad, other)), 100, 200, error="ValueError: no")
    root = pytorch._passes[-1].graph.root
    pytorch.saw((root, 110, 120), (bad, 130, 140))
    again = node("Cos", 3)
    pytorch.begin(graph(again), 300, 400)
    pytorch.saw((again, 310, 320))

    popped = [one.node for one in pytorch.events(e.TaskPopped)]
    assert popped == [root.id, bad.id, again.id]
    assert pytorch.events(e.Unexplained) == []


def test_a_device_has_a_queue_and_a_thread(pytorch):
    end = leaf()
    far = node("Mul", 2, end, device="cuda:1")
    root = node("Add", 3, far, device="cuda:1")
    pytorch.begin(graph(root), 100, 900)
    pytorch.saw(
        Seen(root, 110, 120, ELSEWHERE),
        Seen(far, 130, 140, ELSEWHERE),
        Seen(end, 150, 160),
    )

    trace = pytorch.trace()
    pushed = [one for one in trace.events() if isinstance(one, e.TaskPushed)]
    assert [trace.queues[one.queue].device for one in pushed] == [1, 1, -1]
    started = [one for one in trace.events() if isinstance(one, e.NodeStarted)]
    assert started[0].thread == started[1].thread != started[2].thread
    assert pytorch.events(e.Unexplained) == []
    assert violations(pytorch) == ()


def test_nodes_of_a_pass_without_a_listener_are_reported_nowhere(pytorch):
    last = leaf()
    root = node("Sin", 1, last)
    pytorch.begin(graph(root), 100, 900)
    unheard = WatchedPass(-1, None, Probe(), ELSEWHERE, "")
    unheard.called_ns, unheard.returned_ns = 105, 800
    pytorch._passes.append(unheard)
    pytorch.saw(
        (root, 110, 120),
        Seen(leaf(), 115, 125, ELSEWHERE),  # by its name it might be the other one
        (last, 130, 140),
    )

    started = pytorch.events(e.NodeStarted)
    assert [(one.node, one.t_ns) for one in started] == [(root.id, 110), (last.id, 130)]
    assert pytorch.events(e.Unexplained) == []
    assert violations(pytorch) == ()


def test_a_node_is_popped_before_a_pass_in_its_hook_begins(pytorch):
    end = leaf()
    root = node("Sin", 5, end)
    outer = pytorch.begin(graph(root), 100, 900)
    inner_root = node("Inner", 9)
    pytorch.begin(graph(inner_root), 300, 500, parent=outer, inside=end)
    pytorch.saw((root, 110, 120), (inner_root, 310, 320), (end, 600, 610))

    assert of_kind(pytorch, e.TaskPopped, e.ReentrantEntered, e.ReentrantLeft) == [
        (e.TaskPopped, root.id),
        (e.TaskPopped, end.id),
        (e.ReentrantEntered, -1),
        (e.TaskPopped, inner_root.id),
        (e.ReentrantLeft, -1),
    ]
    assert not pytorch.events(e.Unexplained)
    assert violations(pytorch) == ()


def test_a_node_hands_on_after_a_pass_in_a_hook_behind_it(pytorch):
    end = leaf()
    root = node("Sin", 5, end)
    outer = pytorch.begin(graph(root), 100, 900)
    inner_root = node("Inner", 9)
    pytorch.begin(graph(inner_root), 300, 500, parent=outer, inside=root)
    pytorch.saw((root, 110, 120), (inner_root, 310, 320), (end, 600, 610))

    assert of_kind(pytorch, e.TaskPushed, e.NodeCompleted, e.ReentrantLeft) == [
        (e.TaskPushed, root.id),
        (e.NodeCompleted, root.id),
        (e.TaskPushed, inner_root.id),
        (e.NodeCompleted, inner_root.id),
        (e.ReentrantLeft, -1),
        (e.TaskPushed, end.id),
        (e.NodeCompleted, end.id),
    ]
    assert not pytorch.events(e.Unexplained)
    assert violations(pytorch) == ()


def test_a_node_whose_gradient_is_captured_may_have_hooks_that_run_passes(pytorch):
    end = leaf()
    root = node("Sin", 5, end)
    outer = pytorch.begin(graph(root, end), 100, 900, accumulates=False)
    inner_root = node("Inner", 9)
    pytorch.begin(graph(inner_root), 300, 500, parent=outer, inside=end)
    pytorch.saw((root, 110, 120), (inner_root, 310, 320))

    assert of_kind(pytorch, e.TaskPopped, e.CaptureTaken, e.ReentrantLeft) == [
        (e.TaskPopped, root.id),
        (e.TaskPopped, end.id),
        (e.TaskPopped, inner_root.id),
        (e.ReentrantLeft, -1),
        (e.CaptureTaken, end.id),
    ]
    assert not pytorch.events(e.Unexplained)
    assert violations(pytorch) == ()


def test_the_identity_of_a_leaf_is_doubted_after_a_hook_has_failed(pytorch):
    failing = node("Sin", 3, leaf(), leaf())
    pytorch.begin(graph(failing), 100, 200, error="in a hook")
    ends = leaf(), leaf()
    root = node("Add", 9, *ends)
    pytorch.begin(graph(root), 300, 900)
    runs = [(one, 310 + 10 * nr, 315 + 10 * nr) for nr, one in enumerate((root, *ends))]
    pytorch.saw((failing, 110, 120), *runs)

    (doubt,) = pytorch.events(e.Unexplained)
    assert doubt.node == ends[0].id
    assert "an earlier pass failed in a hook" in doubt.text
