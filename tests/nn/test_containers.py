from collections import OrderedDict

import pytest

import gradviz as gv
from gradviz import nn


class Add(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def forward(self, x):
        return x + self.number


def numbers(modules):
    return [one.number for one in modules]


@pytest.fixture
def row():
    return nn.Sequential(Add(1), Add(2), Add(3))


def test_each_module_takes_what_the_one_before_returned(row):
    assert row(0) == 6


def test_a_sequence_can_have_names():
    row = nn.Sequential(OrderedDict(first=Add(1), second=Add(2)))

    assert row.second is row[1]
    assert [name for name, _ in row.named_children()] == ["first", "second"]


@pytest.mark.parametrize("kind", [nn.Sequential, lambda *args: nn.ModuleList(args)])
def test_rows_of_modules_behave_as_lists(kind):
    row = kind(Add(0), Add(1), Add(2))

    assert numbers(row) == [0, 1, 2]
    assert len(row) == 3
    assert row[-1].number == 2
    assert numbers(row[1:]) == [1, 2]
    assert type(row[1:]) is type(row)
    row[1] = Add(7)
    row.append(Add(8)).extend([Add(9)])
    row.insert(0, Add(6))
    assert numbers(row) == [6, 0, 7, 2, 8, 9]
    del row[0]
    del row[-2:]
    assert numbers(row) == [0, 7, 2]
    assert row.pop(0).number == 0
    assert [name for name, _ in row.named_children()] == ["0", "1"]


@pytest.mark.parametrize("index", [3, -4])
def test_an_index_beyond_the_end_is_an_error(row, index):
    with pytest.raises(IndexError, match="is out of range"):
        row[index]


def test_rows_can_be_joined(row):
    assert numbers(row + nn.Sequential(Add(4))) == [1, 2, 3, 4]
    modules = nn.ModuleList([Add(1)])
    modules += [Add(2)]
    assert numbers(modules + nn.ModuleList([Add(3)])) == [1, 2, 3]


def test_only_modules_are_put_into_rows(row):
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        row.append(3)


def test_a_dict_of_modules_behaves_as_a_dict():
    modules = nn.ModuleDict({"a": Add(1)})
    modules["b"] = Add(2)
    modules.update([("c", Add(3))])

    assert list(modules) == list(modules.keys()) == ["a", "b", "c"]
    assert numbers(modules.values()) == [1, 2, 3]
    assert "b" in modules
    assert modules.pop("b").number == 2
    del modules["a"]
    assert dict(modules.items()) == {"c": modules["c"]}
    modules.clear()
    assert len(modules) == 0
    with pytest.raises(KeyError):
        del modules["a"]


def test_a_list_of_parameters_makes_parameters():
    parameters = nn.ParameterList([gv.ones(1), nn.Parameter(gv.zeros(2))])
    parameters += [gv.ones(3)]
    parameters[0] = gv.ones(4)

    assert [tuple(one.shape) for one in parameters] == [(4,), (2,), (3,)]
    assert all(isinstance(one, nn.Parameter) for one in parameters.parameters())
    assert [name for name, _ in parameters.named_parameters()] == ["0", "1", "2"]
    assert [tuple(one.shape) for one in parameters[1:]] == [(2,), (3,)]


def test_a_dict_of_parameters_makes_parameters():
    parameters = nn.ParameterDict({"a": gv.ones(1)})
    parameters["b"] = gv.ones(2)

    assert list(parameters) == ["a", "b"]
    assert all(isinstance(one, nn.Parameter) for one in parameters.values())
    del parameters["a"]
    assert [name for name, _ in parameters.items()] == ["b"]
