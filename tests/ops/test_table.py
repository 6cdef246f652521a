import operator
from types import ModuleType

import pytest

import gradviz as gv
import gradviz.linalg
import gradviz.nn.functional
import gradviz.special
from gradviz import api
from gradviz.ops.dispatch.public import Home, names
from gradviz.ops.table import gathered, public, publish
from tests.ops.cases.table import CASES

OWNERS = {
    Home.GRADVIZ: api,
    Home.TENSOR: gv.Tensor,
    Home.FUNCTIONAL: gradviz.nn.functional,
    Home.LINALG: gradviz.linalg,
    Home.SPECIAL: gradviz.special,
}


def module(name, *said):
    made = ModuleType(name)
    made.PUBLIC = list(said)
    return made


def halve(x):
    return x / 2


def test_ops_that_a_module_names_are_in_the_table():
    table = gathered([module("halves", *names("gv.f x.f_", halve)), ModuleType("none")])

    x = gv.ones(2)
    assert table[Home.GRADVIZ]["halve"] is halve
    assert table[Home.TENSOR]["halve_"](x) is x
    assert x.tolist() == [0.5, 0.5]


def test_a_name_said_twice_is_refused_with_both_places():
    first, second = (module(name, *names("gv.f", halve)) for name in ("one", "other"))

    with pytest.raises(
        ImportError, match=r"'halve' .* twice, by PUBLIC of one and of o"
    ):
        gathered([first, second])


def test_a_name_that_its_owner_has_already_is_refused():
    name = next(iter(public(Home.SPECIAL)))
    owner = ModuleType("special")
    setattr(owner, name, halve)

    with pytest.raises(ImportError, match=f"special defines {name!r} itself"):
        publish(Home.SPECIAL, owner)


@pytest.mark.parametrize("home", OWNERS)
def test_every_name_is_where_it_says(home):
    for name, op in public(home).items():
        assert vars(OWNERS[home])[name] is op


def test_every_case_is_about_something_public():
    for name in {case.name for case in CASES}:
        assert callable(operator.attrgetter(name)(gv))


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name in public(Home.GRADVIZ).keys() & public(Home.TENSOR).keys()
        if name.endswith("_")
    ),
)
def test_a_function_in_place_is_the_method(name):
    function = getattr(gv, name)

    assert getattr(function, "__wrapped__", function) in (
        getattr(gv.Tensor, name),
        getattr(getattr(gv.Tensor, name), "__wrapped__", None),
    )


def test_a_function_in_place_changes_and_returns_its_argument():
    x = gv.zeros(2)

    assert gv.exp_(x) is x
    assert x.tolist() == [1.0, 1.0]
