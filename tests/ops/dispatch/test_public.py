import pytest

from gradviz.ops.dispatch.public import Home, PublicName, names


def halve(x):
    return x / 2


def test_a_name_is_in_each_place_of_its_forms():
    said = list(names("gv.f x.f", halve, half=halve))

    assert sorted(said, key=lambda one: (one.home.value, one.name)) == [
        PublicName(Home.GRADVIZ, "half", halve),
        PublicName(Home.GRADVIZ, "halve", halve),
        PublicName(Home.TENSOR, "half", halve),
        PublicName(Home.TENSOR, "halve", halve),
    ]


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("gv.f", "halve"),
        ("gv.f(out=)", "halve"),
        ("gv.f_", "halve_"),
        ("linalg.f(out=)", "halve"),
    ],
)
def test_a_form_says_how_the_name_is_written(form, name):
    assert [one.name for one in names(form, halve)] == [name]


@pytest.mark.parametrize("form", ["gv.g", "torch.f", "x.f__", "gv.f(in=)"])
def test_an_unknown_form_is_refused(form):
    with pytest.raises(ValueError, match=r"expected forms such as|not a valid Home"):
        list(names(form, halve))
