import pytest

import gradviz as gv
from gradviz.distributed.backward.attachment import add_send_rpc_backward
from gradviz.distributed.backward.context import DistAutogradContext
from gradviz.distributed.backward.distributed_task import DistGraphTask
from gradviz.distributed.backward.functions import RecvRpcBackward
from gradviz.distributed.backward.preparation import (
    prepare,
    validate_roots_and_retrieve_edges,
)
from gradviz.engine import Edge, Engine, GraphRoot
from gradviz.engine.graph.node import InputMetadata, Node
from gradviz.engine.graph.sync import THREADS
from gradviz.ops.variables.variable import variable


@pytest.fixture
def context():
    return DistAutogradContext(0, THREADS)


@pytest.fixture
def graph_task():
    engine = Engine()
    return DistGraphTask(
        THREADS,
        pass_id=1,
        keep_graph=False,
        shared_queue=engine.queues.new_caller_queue(),
        probe=None,
    )


def leaf():
    return gv.ones(1, requires_grad=True)


def send(context, message_id, *tensors):
    add_send_rpc_backward(context, tensors, message_id=message_id, peer=1, function="f")
    return context.retrieve_send_function(message_id)


def received():
    metadata = InputMetadata((1,), gv.ones(1).array.dtype)
    node = RecvRpcBackward([metadata], message_id=9, peer=1, propagate=lambda *_: None)
    return variable(gv.ones(1).array, Edge(node, 0)), node


def test_a_root_begins_with_a_one_of_its_dtype():
    root = (gv.ones(2, dtype=gv.float64, requires_grad=True) * 2).sum()
    edges, (gradient,) = validate_roots_and_retrieve_edges([root])

    assert edges == [Edge(root.grad_fn, 0)]
    assert (gradient.dtype, gradient.tolist()) == ("float64", 1.0)


def test_everything_that_was_sent_counts_as_outstanding(context, graph_task):
    x = leaf()
    sends = [send(context, number, x * number) for number in range(3)]
    prepare(graph_task, context, GraphRoot([Edge(x.accumulator())], [1.0]))

    assert graph_task.outstanding_tasks == 3
    assert all(graph_task.dependencies[one] == 0 for one in sends)
    assert graph_task.dependencies[x.accumulator()] == 4


def test_on_other_workers_the_send_that_was_fed_first_is_one_of_them(
    context, graph_task
):
    first, _ = (send(context, number, leaf()) for number in range(2))
    prepare(graph_task, context, first)

    assert graph_task.outstanding_tasks == 2


def test_leaves_are_captured_and_receives_run(context, graph_task):
    x = leaf()
    y, node = received()
    prepare(graph_task, context, send(context, 0, x * 2, y))

    leaf_info = graph_task.exec_info[x.accumulator()]
    assert not leaf_info.is_needed
    assert len(leaf_info.captures) == 1
    assert graph_task.exec_info[node].is_needed
    assert graph_task.exec_info[node].captures == []


def test_a_graph_that_ends_in_anything_else_is_refused(context, graph_task):
    class Nowhere(Node):
        pass

    with pytest.raises(RuntimeError, match="ends in Nowhere, which is neither a leaf"):
        prepare(graph_task, context, GraphRoot([Edge(Nowhere())], [1.0]))
