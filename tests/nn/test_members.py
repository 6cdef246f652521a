import pytest

import gradviz as gv
from gradviz import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(gv.ones(2))
        self.register_buffer("seen", gv.zeros(1))
        self.register_buffer("scratch", gv.zeros(1), persistent=False)


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(gv.zeros(2))
        self.first = Part()
        self.parts = nn.ModuleList([Part(), self.first])


def names(pairs):
    return [name for name, _ in pairs]


def test_parameters_have_the_path_to_them_as_name():
    assert names(Whole().named_parameters()) == [
        "bias",
        "first.weight",
        "parts.0.weight",
    ]


def test_a_shared_parameter_is_listed_once_unless_duplicates_are_wanted():
    whole = Whole()

    twice = names(whole.named_parameters(remove_duplicate=False))

    assert len(list(whole.parameters())) == 3
    assert twice == ["bias", "first.weight", "parts.0.weight", "parts.1.weight"]


def test_modules_come_before_what_is_below_them():
    assert names(Whole().named_modules()) == ["", "first", "parts", "parts.0"]
    assert names(Whole().named_children()) == ["first", "parts"]


def test_buffers_are_no_parameters():
    assert names(Whole().named_buffers())[:2] == ["first.seen", "first.scratch"]
    assert names(Part().named_parameters()) == ["weight"]


def test_without_recursion_only_its_own_come():
    assert names(Whole().named_parameters(recurse=False)) == ["bias"]


def test_an_attribute_can_change_its_kind():
    part = Part()
    part.thing = 3
    part.thing = nn.Parameter(gv.ones(1))
    part.seen = Part()

    assert names(part.named_parameters()) == ["weight", "thing", "seen.weight"]
    assert "thing" not in part.__dict__


def test_a_parameter_keeps_its_place_when_it_is_replaced():
    whole = Whole()
    whole.other = nn.Parameter(gv.ones(1))

    whole.bias = nn.Parameter(gv.ones(2))

    assert names(whole.named_parameters(recurse=False)) == ["bias", "other"]


def test_a_member_may_be_none():
    part = Part()
    part.weight = None
    part.seen = None

    assert part.weight is None
    assert list(part.parameters()) == []
    assert names(part.named_buffers()) == ["scratch"]


def test_a_member_can_be_deleted():
    part = Part()
    del part.weight

    assert not hasattr(part, "weight")
    with pytest.raises(AttributeError):
        del part.weight


def test_a_tensor_takes_the_place_of_a_buffer_only():
    part = Part()
    part.seen = gv.ones(3)

    assert part.seen is dict(part.named_buffers())["seen"]
    with pytest.raises(TypeError, match=r"cannot assign .* as parameter 'weight'"):
        part.weight = gv.ones(2)


def test_a_child_is_replaced_by_a_module_or_none_only():
    with pytest.raises(TypeError, match="as child module 'first'"):
        Whole().first = 3


@pytest.mark.parametrize("value", [nn.Parameter(gv.ones(1)), nn.ModuleList()])
def test_assigning_before_init_is_an_error(value):
    class Hasty(nn.Module):
        def __init__(self):
            self.member = value

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Hasty()


def test_an_attribute_that_is_not_there_is_named():
    with pytest.raises(AttributeError, match="'Part' object has no attribute 'bias'"):
        Part().bias  # noqa: B018 - the access is the test


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("", KeyError, "t be empty"),
        ("a.b", KeyError, "t contain"),
        ("forward", KeyError, "attribute 'forward' already exists"),
        (3, TypeError, "should be a string. Got int"),
    ],
)
@pytest.mark.parametrize(
    "register", ["register_parameter", "register_buffer", "add_module"]
)
def test_a_name_must_be_possible(register, name, error, words):
    with pytest.raises(error, match=words):
        getattr(Part(), register)(name, None)


def test_only_leaves_become_parameters():
    made = nn.Parameter(gv.ones(1)) * 2

    with pytest.raises(TypeError, match="Parameter or None required"):
        Part().register_parameter("made", made)


def test_parts_are_found_by_their_path():
    whole = Whole()

    assert whole.get_submodule("parts.0") is whole.parts[0]
    assert whole.get_submodule("") is whole
    assert whole.get_parameter("first.weight") is whole.first.weight
    assert whole.get_buffer("first.seen") is whole.first.seen


@pytest.mark.parametrize(
    ("find", "path", "words"),
    [
        ("get_submodule", "first.x", "Part has no attribute `x`"),
        ("get_submodule", "bias", "`bias` is not an nn.Module"),
        ("get_parameter", "first.seen", "`seen` is not an nn.Parameter"),
        ("get_buffer", "first.weight", "`weight` is not a buffer"),
    ],
)
def test_a_path_that_leads_nowhere_is_an_error(find, path, words):
    with pytest.raises(AttributeError, match=words):
        getattr(Whole(), find)(path)
