"""Parameters of a step, and reasons why some have no gradient."""

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.analysis.nodes.missing_gradients import NoGradient
from gradviz.analysis.nodes.parameter_gradients import find_parameter_gradients
from gradviz.optim import SGD
from gradviz.trace.probe import Model, ModelParameter
from tests.analysis.conftest import Story
from tests.trace.merging.test_merged_file import merge, of


class Inner(nn.Module):
    """A layer whose result is detached before it is handed on."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x).detach()


class Net(nn.Module):
    """A model that loses the gradients of most of its parts, each in a way."""

    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(2, 2).requires_grad_(False)
        self.used = nn.Linear(2, 2)
        self.other_head = nn.Linear(2, 2)
        self.spare = nn.Linear(2, 2)
        self.muted = nn.Linear(2, 2)
        self.inner = Inner()
        self.extra = nn.Parameter(gv.ones(1))
        self.tied = self.used

    def forward(self, x, *, spare=False):
        x = self.tied(self.used(self.frozen(x)))
        self.other_head(x)
        with gv.no_grad():
            muted = self.muted(x)
        x = x + muted + self.inner(x)
        return self.spare(x) if spare else x


def recorded(net, *calls):
    """Return a trace of a pass for each set of arguments."""
    with gv.record() as recording:
        for kwargs in calls:
            net(gv.ones(1, 2), **kwargs).sum().backward()
    return recording.trace


@pytest.fixture(scope="module")
def trace():
    return recorded(Net(), {"spare": True}, {})


def rows_of(trace, tasks=None):
    """Return the rows by the ends of their first names, without the model's."""
    found = find_parameter_gradients(trace, tasks or trace.tasks[-1:])
    return {one.names[0].partition(".")[2]: one for one in found.rows if one.names}


def why(trace, name, tasks=None):
    return rows_of(trace, tasks)[name].missing


def test_a_parameter_says_how_often_it_was_used_and_which_node_accumulated(trace):
    row = rows_of(trace)["used.weight"]

    assert (row.has_gradient, row.num_uses, row.num_accumulated) == (True, 2, 1)
    assert trace.nodes[row.node].parameters == row.names
    assert row.number is not None
    assert row.missing is None


def test_a_shared_parameter_is_one_row_with_both_names(trace):
    assert [name.partition(".")[2] for name in rows_of(trace)["used.weight"].names] == [
        "used.weight",
        "tied.weight",
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("frozen.weight", NoGradient.FROZEN),
        ("other_head.bias", NoGradient.RESULT_NOT_USED),
        ("spare.weight", NoGradient.MODULE_NOT_CALLED),
        ("muted.weight", NoGradient.NO_GRAD),
        ("inner.layer.weight", NoGradient.CUT_AFTER_MODULE),
        ("extra", NoGradient.NOT_USED),
    ],
)
def test_a_parameter_without_a_gradient_has_the_reason(trace, name, reason):
    assert why(trace, name).reason is reason


def test_a_parameter_used_with_gradients_disabled_names_the_line_of_the_call(trace):
    found = why(trace, "muted.weight")

    assert found.inside.endswith(".muted")
    assert "test_parameter_gradients.py:" in found.location


def test_a_cut_names_the_module_whose_result_required_none(trace):
    assert why(trace, "inner.layer.weight").inside.endswith(".inner")


def test_a_parameter_of_some_passes_counts_those_that_reached_it(trace):
    row = rows_of(trace)["spare.weight"]

    assert row.num_other_passes == 1
    assert rows_of(trace, trace.tasks)["spare.weight"].has_gradient


def test_a_parameter_frozen_between_passes_is_frozen_from_then_on():
    net = nn.Linear(2, 2)
    with gv.record() as recording:
        net(gv.ones(1, 2)).sum().backward()
        net.weight.requires_grad_(False)
        net(gv.ones(1, 2)).sum().backward()
        net.weight.requires_grad_(True)
        net(gv.ones(1, 2)).sum().backward()
    trace = recording.trace

    found = [rows_of(trace, [task])["weight"].missing for task in trace.tasks]

    assert [one and one.reason for one in found] == [None, NoGradient.FROZEN, None]


def test_a_pass_that_was_asked_for_other_gradients_says_so():
    net = nn.Linear(2, 2)
    x = gv.ones(1, 2, requires_grad=True)
    with gv.record() as recording:
        gv.autograd.grad(net(x).sum(), [x])

    assert why(recording.trace, "weight").reason is NoGradient.NOT_ASKED


def test_tensors_of_an_optimizer_that_no_module_has_are_listed():
    net, other = nn.Linear(2, 2), gv.ones(3, requires_grad=True)
    optimizer = SGD([net.weight, other], lr=0.1)
    with gv.record() as recording:
        net(gv.ones(1, 2)).sum().backward()
        optimizer.step()

    found = find_parameter_gradients(recording.trace, recording.trace.tasks)
    held = {one.names[0].rpartition(".")[2]: one.optimizers for one in found.rows}

    ((name, shape),) = found.strangers
    assert (name.partition("#")[0], shape) == ("SGD", "(3,)")
    assert held == {"weight": (name,), "bias": ()}


def test_a_leaf_of_no_module_is_a_row_without_a_name():
    with gv.record() as recording:
        gv.ones(3, requires_grad=True).sum().backward()

    (row,) = find_parameter_gradients(recording.trace, recording.trace.tasks).rows

    assert (row.names, row.shape, row.has_gradient) == ((), (3,), True)


def test_without_calls_of_modules_the_reason_is_unknown():
    story = Story()
    story.begin(0, [root := story.node(1)], at=0)
    story.ran(0, root, at=10, until=20)
    story.end(0, at=30)
    weight = ModelParameter(("Net.weight",), (2,), "float32", "cpu", True)
    story.recorder.model_defined(Model("Net", (weight,), 1))

    assert why(story.trace(), "weight").reason is NoGradient.UNKNOWN


def test_in_merged_traces_each_rank_counts_and_what_differs_is_named():
    net = Net()
    with_spare, without = recorded(net, {"spare": True}), recorded(net, {})
    clocks = without.clocks
    trace = merge(
        *(
            of(each, clocks=clocks, pid=10 + rank, recording=rank, boot_id="same")
            for rank, each in enumerate((with_spare, without))
        )
    )

    found = find_parameter_gradients(trace, trace.tasks[-1:])
    spare = [one for one in found.rows if one.names[0].endswith(".spare.weight")]
    used = [one for one in found.rows if one.names[0].endswith(".used.weight")]

    assert [name.partition(".")[2] for name in found.differing] == [
        "spare.bias",
        "spare.weight",
    ]
    assert {one.ranks: one.has_gradient for one in spare} == {(0,): True, (1,): False}
    assert [(one.ranks, one.has_gradient) for one in used] == [((0, 1), True)]
