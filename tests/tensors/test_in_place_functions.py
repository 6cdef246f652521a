import pytest

import gradviz as gv
from gradviz.tensors import in_place_functions

NAMES = [name for name in vars(in_place_functions) if name.endswith("_")]
NAMES = [name for name in NAMES if not name.startswith("_")]


@pytest.mark.parametrize("name", NAMES)
def test_each_is_the_method(name):
    function = getattr(gv, name)

    assert getattr(function, "__wrapped__", function) in (
        getattr(gv.Tensor, name),
        getattr(getattr(gv.Tensor, name), "__wrapped__", None),
    )


def test_it_changes_and_returns_its_argument():
    x = gv.zeros(2)

    assert gv.exp_(x) is x
    assert x.tolist() == [1.0, 1.0]
