"""Parameters that passes did not reach."""

import copy

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.analysis.nodes.addresses import (
    NoSuchNodeError,
    UnreachedParameterError,
    find_node,
)
from gradviz.analysis.nodes.parameters import document_of, find_parameters
from gradviz.trace.format.model import ModelDefinition, ParameterDefinition


class Net(nn.Module):
    """Three layers: one always runs, one sometimes, one never."""

    def __init__(self):
        super().__init__()
        self.always = nn.Linear(2, 2)
        self.sometimes = nn.Linear(2, 2)
        self.never = nn.Linear(2, 3)
        self.frozen = nn.Linear(2, 2).requires_grad_(False)

    def forward(self, x, both):
        x = self.frozen(self.always(x))
        return self.sometimes(x) if both else x


@pytest.fixture(scope="module")
def trace():
    """Four passes; the first and the third reach the second layer."""
    net = Net()
    with gv.record() as recording:
        for both in (True, False, True, False):
            net(gv.ones(1, 2), both).sum().backward()
    return recording.trace


def with_models(trace, models):
    """The same trace, where the recorder has defined other models."""
    other = copy.copy(trace)
    other.models = models
    return other


def with_parameters(name, *parameters):
    """A model whose parameters have these names each."""
    some = tuple(
        ParameterDefinition(names, (2,), "float32", "cpu", requires_grad=True)
        for names in parameters
    )
    return ModelDefinition(name, len(some), some)


def unreached(trace, address, task=None):
    with pytest.raises(UnreachedParameterError) as caught:
        find_node(trace, trace.tasks[-1] if task is None else task, address)
    return caught.value


def model_of(trace):
    """The name of the only model."""
    (name,) = trace.models
    return name


@pytest.mark.parametrize("is_whole", [False, True])
def test_of_a_parameter_without_a_node_it_is_known_that_no_pass_reached_it(
    trace, is_whole
):
    name = f"{model_of(trace)}.never.weight"
    error = unreached(trace, name if is_whole else "never.weight")

    assert error.parameter.parameters == (name,)
    assert str(error) == f"no pass of this trace reached parameter {name!r}"
    assert error.parameter.definition.shape == (3, 2)
    assert error.parameter.definition.requires_grad
    assert (error.parameter.num_reached_by, error.parameter.num_passes) == (0, 4)


def test_a_frozen_parameter_is_known_to_be_frozen(trace):
    assert unreached(trace, "frozen.bias").parameter.definition.requires_grad is False


def test_the_passes_that_reached_it_are_told(trace):
    error = unreached(trace, "sometimes.weight")

    first, _, third, last = trace.tasks
    assert error.parameter.reached_by == (first, third)
    assert str(error).startswith(f"pass {last} did not reach parameter 'Net")
    assert str(error).endswith("; 2 other passes did")
    assert find_node(trace, first, "sometimes.weight") in trace.nodes


def test_an_end_that_several_have_names_them(trace):
    other = with_parameters("Other", ("Other.never.weight",))
    two = with_models(trace, {**trace.models, "Other": other})
    with pytest.raises(NoSuchNodeError) as caught:
        find_node(two, trace.tasks[0], "never.weight")

    assert "means 2 parameters that pass" in str(caught.value)
    assert "'Other.never.weight'" in str(caught.value)


def test_a_parameter_that_a_model_has_twice_is_one(trace):
    model = with_parameters("A", ("A.weight", "A.same"), ("A.other.weight",))
    some = with_models(trace, {"A": model})

    for address in ("A.weight", "A.same", "same"):
        (found,) = find_parameters(some, address)
        assert (found.names, found.nodes) == (("A.weight", "A.same"), ())


def test_a_trace_without_models_says_so_under_a_condition(trace):
    older = with_models(trace, {})
    for address in (f"{model_of(trace)}.never.weight", "never.weight"):
        with pytest.raises(NoSuchNodeError) as caught:
            find_node(older, trace.tasks[0], address)
        assert "If it is a parameter, no pass of this trace reached it" in str(
            caught.value
        )
    assert unreached(older, "sometimes.weight").parameter.num_reached_by == 2


def test_a_name_that_a_listed_model_does_not_have_is_a_mistake(trace):
    model = model_of(trace)
    with pytest.raises(NoSuchNodeError, match="Did you mean") as caught:
        find_node(trace, trace.tasks[0], f"{model}.nevr.weight")

    assert "If it is a parameter" not in str(caught.value)
    assert f"'{model}.never.weight'" in str(caught.value)


def test_it_is_a_document(trace):
    document = document_of(unreached(trace, "frozen.weight").parameter)

    assert document["schema"] == "gradviz.unreached_parameter"
    assert document["definition"]["requires_grad"] is False
    assert document["num_reached_by"] == 0
