from collections import defaultdict

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.analysis.nodes.addresses import (
    AddressBook,
    NoSuchNodeError,
    SeveralNodesError,
    find_node,
    find_node_of_workers,
    nodes_of,
)
from gradviz.analysis.tables.executions import definition
from gradviz.capture.session import record
from gradviz.nn import naming
from tests.analysis.random_passes import random_trace
from tests.analysis.sent_messages import crossing, received, sent


@pytest.fixture
def trace(story):
    """Two Muls, of which node 4 ran first, a Sum, and a leaf that did not run."""
    leaf = story.node(1, name="AccumulateGrad")
    nodes = [
        story.node(2, leaf),
        story.node(3, name="SumBackward0"),
        story.node(4, name="MulBackward0"),
    ]
    story.begin(0, [leaf, *nodes], at=0)
    for at, node in ((10, nodes[2]), (20, nodes[1]), (30, nodes[0])):
        story.ran(0, node, at=at, until=at + 5)
    return story.trace()


@pytest.mark.parametrize(
    ("address", "node"),
    [
        ("3", 3),
        (" 3 ", 3),
        ("SumBackward0", 3),
        ("Sum", 3),
        ("MulBackward0:0", 4),
        ("MulBackward0:1", 2),
        ("Mul:1", 2),
        ("AccumulateGrad", 1),
        ("1", 1),
        ("#0", 4),
        ("#2", 2),
    ],
)
def test_an_address_is_an_id_or_a_name_and_its_place_among_those_that_ran(
    trace, address, node
):
    assert find_node(trace, 0, address) == node


def test_those_that_ran_come_first_in_their_order(trace):
    assert nodes_of(trace, 0) == [4, 3, 2, 1]


def test_several_are_told_with_addresses_that_mean_one(trace):
    with pytest.raises(NoSuchNodeError) as caught:
        find_node(trace, 0, "MulBackward0")

    assert str(caught.value) == (
        "'MulBackward0' means 2 nodes of pass 0: MulBackward0:0, MulBackward0:1"
    )


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("77", "pass 0 has no node 77; it has 4, from 1 to 4"),
        ("Mull", "pass 0 has no node 'Mull'. Did you mean"),
        ("Mul:7", "2 nodes called 'Mul', from Mul:0 to Mul:1: there is no 'Mul:7'"),
        ("#3", "pass 0 has no node #3; it ran 3, from #0"),
        ("%%%", "a node is an id, a number as #3, a name as MulBackward0:2, a line, a"),
        ("", "a node is an id"),
        ("9" * 5_000, "pass 0 has no node '999"),
        ("Mul:" + "9" * 5_000, "there is no 'Mul:999"),
    ],
)
def test_an_address_of_no_node_is_refused_in_a_short_message(trace, address, words):
    with pytest.raises(NoSuchNodeError) as caught:
        find_node(trace, 0, address)

    assert words in str(caught.value)
    assert caught.value.exit_code == 2
    assert len(str(caught.value)) < 500


def test_a_line_and_a_module_are_addresses():
    with record() as recording:
        model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
        y = model(gv.ones(1, 2))
        (y * 3).sum().backward()
    trace = recording.trace
    (task,) = trace.tasks

    tanh = find_node(trace, task, "TanhBackward0")
    mul = find_node(trace, task, "Mul")
    line = trace.nodes[mul].location.rpartition("/")[2]

    assert find_node(trace, task, trace.nodes[tanh].module) == tanh
    with pytest.raises(NoSuchNodeError, match=f"'{line}' means 2 nodes"):
        find_node(trace, task, line)


@pytest.fixture(scope="module")
def model():
    class Net(gv.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = gv.nn.Sequential(gv.nn.Linear(2, 2), gv.nn.Linear(2, 2))
            self.head = gv.nn.Linear(2, 2)
            self.head.weight = self.encoder[1].weight

        def forward(self, x):
            return self.head(self.encoder(x))

    with pytest.MonkeyPatch.context() as patch, record() as recording:
        # Else the root is net#2 where a worker sets the fixture up for a second time.
        patch.setattr(naming, "_numbers", {})
        gv.nn.name_root(Net(), "net")(gv.ones(1, 2)).sum().backward()
    return recording.trace


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("net.encoder.0.weight", "net.encoder.0.weight"),
        ("encoder.0.weight", "net.encoder.0.weight"),
        ("0.bias", "net.encoder.0.bias"),
        ("head.weight", "net.head.weight"),
        ("encoder.1.weight", "net.head.weight"),
    ],
)
def test_a_leaf_is_found_by_any_name_of_its_parameter_or_by_its_end(
    model, address, name
):
    (task,) = model.tasks

    found = model.nodes[find_node(model, task, address)]

    assert found.name == "AccumulateGrad"
    assert name in found.parameters


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("encoder.0.weihgt", "Did you mean 'encoder.0.weight'"),
        ("coder.0.weight", "Did you mean 'encoder.0.weight'"),
        ("bias", "means 3 nodes"),
        ("bias", "net.encoder.0.bias"),
    ],
)
def test_a_parameter_name_of_none_or_several_is_refused_with_the_candidates(
    model, address, words
):
    with pytest.raises(NoSuchNodeError) as error:
        find_node(model, model.tasks[0], address)

    assert words in str(error.value)


def test_candidates_are_told_by_numbers_that_mean_each_of_them(model):
    (task,) = model.tasks
    with pytest.raises(SeveralNodesError) as error:
        find_node(model, task, "bias")

    told = str(error.value).partition(": ")[2].split(", ")
    found = [find_node(model, task, one.partition(" ")[0]) for one in told]
    assert all(one.startswith("#") for one in told)
    assert found == [*error.value.nodes]


@pytest.mark.parametrize("seed", range(3))
def test_each_node_of_a_random_graph_is_found_by_all_that_it_is_called(seed):
    trace = random_trace(seed, num_devices=seed + 1)
    for task in trace.tasks:
        nodes, book = nodes_of(trace, task), AddressBook(trace, task)
        known = {node: definition(trace, node) for node in nodes}
        assert len(known) == len(nodes)
        counts: dict[str, int] = defaultdict(int)
        for node, one in known.items():
            assert book.find(f"{one.name}:{counts[one.name]}") == node
            assert book.find(str(node)) == node
            counts[one.name] += 1
        for text in {one.location for one in known.values()} - {""}:
            same = [node for node, one in known.items() if one.location == text]
            if len(same) == 1:
                assert book.find(text) == same[0]
            else:
                with pytest.raises(NoSuchNodeError, match=f"means {len(same)} nodes"):
                    book.find(text)


def test_a_node_of_a_worker_is_found_from_the_pass_that_began_it_all(story, device):
    trace = crossing(story, device)

    assert find_node_of_workers(trace, 1, "RecvRpc") == (1, 1)
    assert find_node_of_workers(trace, 1, "2") == (2, 2)
    assert find_node_of_workers(trace, 1, "SendRpc") == (2, 2)
    with pytest.raises(NoSuchNodeError, match="pass 1 has no node 7"):
        find_node_of_workers(trace, 1, "7")


def test_an_address_that_fits_a_node_on_each_of_two_workers_names_both(story):
    names = ("RecvRpcBackward", *["SendRpcBackward"] * 2)
    near, *far = (story.node(one, name=name) for one, name in enumerate(names, 1))
    story.begin(1, [near], at=10)
    story.start(1, near, at=15)
    for task, send in enumerate(far, 2):
        sent(story, 10 * task, 1, near.id, (0, task, task), pass_id=4)
        received(story, 10 * task + 5, send.id, (0, task, task), pass_id=4)
        story.begin(task, [send], at=50 * task)
        story.ran(task, send, at=50 * task + 10, until=50 * task + 15)
    trace = story.trace()

    with pytest.raises(SeveralNodesError, match="2 of pass 2, 3 of pass 3"):
        find_node_of_workers(trace, 1, "SendRpcBackward")


def test_a_send_that_no_gradients_reached_is_of_the_pass_of_its_context(story, device):
    sent(story, 0, -1, story.node(8, name="SendRpcBackward").id, (1, 0, 11))
    sent(story, 0, -1, story.node(9, name="SendRpcBackward").id, (1, 0, 12), context=6)
    trace = crossing(story, device)

    assert find_node_of_workers(trace, 1, "8") == (1, 8)
    with pytest.raises(NoSuchNodeError, match="pass 1 has no node 9"):
        find_node_of_workers(trace, 1, "9")
