import msgspec
import pytest

from gradviz.analysis.graphs.backward_graph import Graph, GraphEdge, build_graph


def pairs_of(graph):
    return [(edge.producer, edge.consumer) for edge in graph.edges]


def test_nodes_come_in_the_order_in_which_they_ran_with_their_times(pair):
    story, root, leaf = pair

    graph = build_graph(story.trace(), 7)

    assert [node.id for node in graph.nodes] == [root.id, leaf.id]
    assert [node.order for node in graph.nodes] == [0, 1]
    assert [(node.start_ns, node.end_ns) for node in graph.nodes] == [(0, 60), (70, 75)]
    assert [node.waited_ns for node in graph.nodes] == [5, 12]
    assert graph.nodes[0].inputs[0].shape == (3, 2)
    assert pairs_of(graph) == [(0, 1)]


def test_an_edge_to_nowhere_is_left_out(story):
    root = story.node(1, None)
    story.begin(0, [root], at=0)
    story.ran(0, root, at=2, until=3)
    story.end(0, at=4)

    assert build_graph(story.trace(), 0).edges == ()


def test_an_edge_says_which_input_it_leads_to(story):
    leaf = story.node(1)
    root = story.node(2, leaf, input_nr=3)
    story.begin(0, [root, leaf], at=0)
    story.ran(0, root, at=2, until=3)
    story.end(0, at=4)

    assert build_graph(story.trace(), 0).edges == (GraphEdge(0, 1, 3),)


def test_reached_nodes_that_did_not_run_are_listed_and_marked(story):
    leaf = story.node(1)
    middle = story.node(2, leaf)
    root = story.node(3, middle)
    story.begin(0, [root, middle, leaf], at=0)
    story.ran(0, root, at=2, until=3)
    story.start(0, middle, at=4)
    story.fail(0, middle, "ValueError: no", at=5)

    nodes = build_graph(story.trace(), 0).nodes

    assert [node.id for node in nodes] == [3, 2, 1]
    assert [node.status for node in nodes] == ["completed", "failed", None]
    assert (nodes[2].order, nodes[2].start_ns, nodes[2].thread) == (None, None, None)


def test_an_edge_to_a_node_whose_definition_is_lost_leads_to_a_stand_in(story):
    lost = story.node(1)
    root = story.node(2, lost)
    story.begin(0, [root], at=0)
    story.ran(0, root, at=2, until=3)
    trace = story.trace()
    assert list(trace.nodes) == [2]

    graph = build_graph(trace, 0)

    assert [node.name for node in graph.nodes] == ["MulBackward0", "?"]


def test_nodes_beyond_a_node_that_was_only_reached_are_left_out(story):
    beyond = story.node(1)
    reached = story.node(2, beyond)
    root = story.node(3, reached)
    story.begin(0, [root, reached], at=0)
    story.ran(0, root, at=2, until=3)

    graph = build_graph(story.trace(), 0)

    assert [node.id for node in graph.nodes] == [3, 2]
    assert [node.omitted_edges for node in graph.nodes] == [0, 1]


def test_a_pass_in_which_nothing_ran_is_an_empty_graph(story):
    story.begin(0, [story.node(1)], at=0)

    trace = story.trace()
    program = trace.header.argv[0]
    expected = Graph(task=0, nodes=(), edges=(), program=program)
    assert build_graph(trace, 0) == expected


def test_a_graph_is_plain_data(pair):
    graph = build_graph(pair[0].trace(), 7)

    assert msgspec.convert(msgspec.to_builtins(graph), Graph) == graph


def test_a_node_says_what_is_usual_for_it_and_what_its_thread_lost(timed):
    for task, lost in ((1, 40), (2, 0), (3, 0)):
        node = timed.node(task, name="Mul")
        timed.begin(task, [node], at=timed.now)
        timed.started(task, task)
        timed.runs(0.2)
        timed.loses(lost)
        timed.recorder.node_completed(task, task)
        timed.end(task, at=timed.now)

    (node,) = build_graph(timed.trace(), 1).nodes

    assert node.took_ns == pytest.approx(40_200_000, abs=50)
    assert node.thread_time_ns == pytest.approx(200_000, abs=50)
    assert node.processor_wait_ns == pytest.approx(40_000_000, abs=50)
    assert (node.num_alike, node.usual_ns) == (3, pytest.approx(200_000, abs=50))


def test_a_graph_has_as_many_nodes_as_are_wanted_and_counts_the_rest(pair):
    trace = pair[0].trace()
    whole = build_graph(trace, 7)

    first = build_graph(trace, 7, max_nodes=1)

    assert [node.id for node in first.nodes] == [whole.nodes[0].id]
    assert first.omitted == 1


def test_a_node_knows_the_passes_that_it_called(story):
    inner, other = story.node(1, name="Inner"), story.node(2, name="Inner")
    outer = story.node(3, other)
    story.begin(0, [outer, other], at=0)
    story.push(0, outer, at=1)
    story.pop(0, outer, at=2)
    story.start(0, outer, at=10)
    for task, at in ((1, 20), (2, 40)):
        story.begin(task, [inner], at=at, parent=0)
        story.take(task, inner, at=(at + 1, at + 2, at + 3), until=at + 10)
        story.end(task, at=at + 11)
    story.complete(0, outer, at=90)
    story.take(0, other, at=(91, 92, 93), until=95)
    story.end(0, at=99)
    trace = story.trace()

    assert [node.calls for node in build_graph(trace, 0).nodes] == [(1, 2), ()]
    assert [node.calls for node in build_graph(trace, 1).nodes] == [()]


def test_a_pass_is_finished_if_it_completed(story, pair):
    root = story.node(11, None)
    story.begin(8, [root], at=200)
    story.take(8, root, at=(201, 202, 203))
    story.fail(8, root, "ValueError: no", at=210)
    trace = story.trace()

    assert build_graph(trace, 7).is_finished
    assert not build_graph(trace, 8).is_finished


@pytest.fixture
def distributed(story, device):
    """Pass 1 of worker 0 sends gradients to pass 2 of worker 3, in a module there."""
    receive = story.node(1, name="RecvRpcBackward")
    leaf = story.node(2, name="AccumulateGrad")
    send = story.node(3, leaf, name="SendRpcBackward")
    message = (9, 5, 4)  # its number, its context, its pass
    story.begin(1, [receive], at=0)
    story.start(1, receive, at=10)
    story.recorder.message_sent(1, receive.id, 0, 3, *message, 12)

    def elsewhere():
        story.recorder.message_received(-1, send.id, 3, 0, *message, 12)
        story.begin(2, [send], at=30)
        story.ran(2, send, at=40, until=50)
        story.end(2, at=60)

    device(elsewhere)
    story.complete(1, receive, at=70)
    story.end(1, at=80)
    return story.trace()


@pytest.mark.parametrize("task", [1, 2])
def test_the_graph_of_a_distributed_pass_is_that_of_all_workers(distributed, task):
    graph = build_graph(distributed, task)

    assert [(one.id, one.order, one.module) for one in graph.nodes] == [
        (1, 0, "worker 0"),
        (3, 1, "worker 3"),
        (2, None, "worker 3"),
    ]
    assert [(one.producer, one.consumer) for one in graph.edges] == [(0, 1), (1, 2)]


def test_it_may_be_that_of_one_worker(distributed):
    graph = build_graph(distributed, 1, has_others=False)

    assert [(one.id, one.module) for one in graph.nodes] == [(1, "")]
    assert graph.edges == ()
