"""Names of parameters' AccumulateGrad nodes in traces."""

import copy
import gc
import weakref

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.nn import naming


@pytest.fixture(autouse=True)
def numbered_from_one(monkeypatch):
    for table in ("_roots", "_named", "_described"):
        monkeypatch.setattr(naming, table, weakref.WeakKeyDictionary())
    monkeypatch.setattr(naming, "_numbers", {})
    naming.forget()
    yield
    naming.forget()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Tanh())
        self.head = nn.Linear(2, 2, bias=False)

    def forward(self, x):
        return self.head(self.encoder(x))


def names(*losses):
    """Those of each pass, sorted."""
    found = []
    for loss in losses:
        with gv.record() as recording:
            loss().backward()
        trace = recording.trace
        found.append(
            sorted(
                trace.nodes[node].parameters
                for node in trace.columns["node_started"]["node"].tolist()
                if trace.nodes[node].name == "AccumulateGrad"
            )
        )
    return found[0] if len(found) == 1 else found


def loss_of(*models):
    return lambda: sum(model(gv.ones(1, 2)).sum() for model in models)


def test_a_recording_lists_all_parameters_of_models_that_ran():
    net = Net()
    net.head.requires_grad_(False)
    with gv.record() as recording:
        for _ in range(3):
            loss_of(net)().backward()
        net.extra = nn.Linear(2, 3)  # from now on the model has others
        net.extra.other = net.extra.bias
        loss_of(net)()

    (model,) = recording.trace.models.values()
    assert model.name == "Net"
    assert {one.names: (one.shape, one.requires_grad) for one in model.parameters} == {
        ("Net.encoder.0.weight",): ((2, 2), True),
        ("Net.head.weight",): ((2, 2), False),
        ("Net.extra.weight",): ((3, 2), True),
        ("Net.extra.bias", "Net.extra.other"): ((3,), True),
    }
    assert {one.dtype for one in model.parameters} == {"float32"}


def test_a_model_is_listed_in_each_recording_in_which_it_runs():
    net = Net()
    for _ in range(2):
        with gv.record() as recording:
            loss_of(net)().backward()
        assert list(recording.trace.models) == ["Net"]


def test_a_parameter_is_called_by_its_model_and_its_place_there():
    assert names(loss_of(Net())) == [("Net.encoder.0.weight",), ("Net.head.weight",)]


def test_two_models_are_told_apart_and_one_is_called_as_the_user_says():
    first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    third = naming.name_root(nn.Linear(2, 2, bias=False), "teacher")

    assert names(loss_of(first, second, third)) == [
        ("Linear#2.weight",),
        ("Linear.weight",),
        ("teacher.weight",),
    ]


def test_a_model_that_is_named_later_has_the_new_name_alone():
    model = nn.Linear(2, 2, bias=False)
    loss_of(model)()
    naming.name_root(model, "student")

    assert names(loss_of(model)) == [("student.weight",)]


def test_a_shared_parameter_has_all_its_names():
    net = Net()
    net.head.weight = net.encoder[0].weight

    assert names(loss_of(net)) == [("Net.encoder.0.weight", "Net.head.weight")]


def test_a_shared_module_gives_its_parameters_all_names():
    net = Net()
    net.head = net.encoder[0]

    assert names(loss_of(net)) == [("Net.encoder.0.weight", "Net.head.weight")]


def test_a_parameter_that_was_replaced_hands_its_name_on():
    net = Net()
    old = net.head.weight
    loss_of(net)()
    net.head.weight = nn.Parameter(gv.ones(2, 2))

    both = lambda: loss_of(net)() + (old * old).sum()  # noqa: E731
    assert names(both) == [(), ("Net.encoder.0.weight",), ("Net.head.weight",)]


def test_a_parameter_that_one_recording_sees_under_two_names_has_the_last_one():
    net = Net()
    weight = net.head.weight
    with gv.record() as recording:
        loss = loss_of(net)()
        loss.backward(retain_graph=True)
        net.head.weight = nn.Parameter(gv.ones(2, 2))
        net.extra = weight
        loss_of(net)()
        loss.backward()
    trace = recording.trace

    found = {one for node in trace.nodes.values() for one in node.parameters}
    assert found == {"Net.encoder.0.weight", "Net.extra"}


def test_a_leaf_outside_a_model_has_the_name_that_it_was_given_or_none():
    named, nameless = (gv.ones(2, requires_grad=True) for _ in range(2))
    named.name = "offset"

    assert names((named * nameless).sum) == [(), ("offset",)]


def test_a_copy_of_a_model_is_a_model_of_its_own():
    model = nn.Linear(2, 2, bias=False)
    loss_of(model)()

    assert names(loss_of(copy.deepcopy(model))) == [("Linear#2.weight",)]


def test_names_keep_no_model_and_no_parameter_alive():
    net = Net()
    watched = [weakref.ref(net), weakref.ref(net.head.weight)]
    assert names(loss_of(net))
    del net
    gc.collect()

    assert [one() for one in watched] == [None, None]


def test_a_model_that_contains_itself_is_named_all_the_same():
    net = Net()
    part = net.encoder[0]
    part.again = net.encoder

    assert names(loss_of(net)) == [("Net.encoder.0.weight",), ("Net.head.weight",)]
