"""Inferred events of a pass."""

from gradviz.analysis.findings.check import check_document, check_trace
from gradviz.analysis.nodes.execution_order import execution_orders
from gradviz.analysis.nodes.inferred import inferred_passes, unexplained_events
from gradviz.render.terminal.cells import make_console
from gradviz.render.terminal.order import print_order
from tests.analysis.conftest import Story
from tests.pytorch.conftest import Told, graph, leaf, node


def watched(*, in_turn=True):
    """A pass of PyTorch's engine, whose nodes may have run in another order."""
    told = Told()
    sides = [node("Sin", 2, leaf()), node("Cos", 1, leaf())]
    root = node("Add", 3, *sides)
    one = told.begin(graph(root), 100, 900)
    order = sides if in_turn else sides[::-1]
    ran = [root, *(part for side in order for part in (side, side.next_edges[0].node))]
    told.saw(*((one, 10 * nr, 10 * nr + 5) for nr, one in enumerate(ran, 11)))
    return told.trace(), one.task, sides


def test_passes_whose_queues_were_not_seen_are_known():
    trace, task, _ = watched()

    assert inferred_passes(trace) == {task}
    assert [one.is_inferred for one in execution_orders(trace, [task])] == [True]


def test_of_our_own_engine_everything_is_seen():
    story = Story()
    story.begin(7, [one := story.node(1)], at=0)
    story.take(7, one, at=(10, 15, 20))

    assert inferred_passes(story.trace()) == frozenset()


def test_an_order_says_that_time_in_the_queue_is_inferred():
    trace, task, _ = watched()
    console = make_console(width=100)

    with console.capture() as capture:
        print_order(*execution_orders(trace, [task]), console)
    assert "in the order they ran, time in the queue inferred" in capture.get()


def test_an_unexplained_event_is_found_and_named():
    trace, task, (_, cos) = watched(in_turn=False)

    (event,) = unexplained_events(trace, 10)
    assert str(event) == f"pass {task}: Cos ({cos.id}): it ran before Sin"
    check = check_trace(trace)
    assert (check.is_fine, check.num_unexplained) == (False, 1)
    assert check_document(check)["unexplained"] == [
        {"task": task, "node": cos.id, "text": f"Cos ({cos.id}): it ran before Sin"}
    ]
    assert not list(unexplained_events(trace, 0))
