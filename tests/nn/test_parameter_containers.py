import pytest

import gradviz as gv
from gradviz import nn


def names(module):
    return [name for name, _ in module.named_parameters()]


def test_tensors_become_parameters_and_other_values_are_kept():
    values = nn.ParameterList(
        [gv.ones(2), nn.Parameter(gv.ones(1)), 3, nn.Linear(1, 1)]
    )

    assert isinstance(values[0], nn.Parameter)
    assert values[2] == 3
    assert names(values) == ["0", "1", "3.weight", "3.bias"]


def test_a_list_can_be_changed():
    values = nn.ParameterList([gv.tensor([1.0 * i]) for i in range(4)])

    assert values.pop(1).item() == 1
    values[-1] = gv.tensor([7.0])
    values += [gv.tensor([8.0])]

    assert [one.item() for one in values] == [0, 2, 7, 8]
    assert names(values[1:]) == ["0", "1", "2"]
    assert names(values) == ["0", "1", "2", "3"]


def test_a_dict_can_be_changed():
    values = nn.ParameterDict({"x": gv.tensor([1.0])})
    values["y"] = gv.tensor([2.0])
    values.setdefault("x", gv.tensor([3.0]))
    values |= nn.ParameterDict({"z": gv.tensor([4.0])})

    assert {key: one.item() for key, one in values.items()} == {"x": 1, "y": 2, "z": 4}
    assert list(reversed(values)) == ["z", "y", "x"]
    assert values.pop("y").item() == 2
    assert values.popitem()[0] == "z"
    assert names(values) == ["x"]
    assert values.get("y") is None
    assert names(values | nn.ParameterDict({"a": gv.ones(1)})) == ["x", "a"]
    values.clear()
    assert len(values) == 0


def test_missing_entries_and_wrong_types_raise():
    with pytest.raises(IndexError, match="index 2 is out of range"):
        nn.ParameterList([gv.ones(1)])[2]
    with pytest.raises(KeyError, match="training"):
        nn.ParameterDict()["training"]
    with pytest.raises(TypeError, match="type is 'int'"):
        nn.ParameterDict({1: gv.ones(1)})
    with pytest.raises(TypeError, match="should be called with an iterable"):
        nn.ParameterList(gv.ones(1))
