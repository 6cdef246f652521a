import pytest

import gradviz as gv


def test_a_tensor_reports_the_properties_that_never_vary():
    x = gv.ones(2)

    assert x.layout is gv.strided
    assert isinstance(x.layout, gv.layout)
    assert f"{gv.strided} {gv.strided!r}" == "gradviz.strided gradviz.strided"
    assert (x.is_sparse, x.is_quantized, x.is_nested, x.is_mkldnn) == (False,) * 4
    assert (x.is_conj(), x.is_neg()) == (False, False)
    assert x.name is None


def test_the_number_of_dimensions_has_two_names():
    assert gv.ones(2, 3).ndimension() == gv.ones(2, 3).dim() == 2


def test_is_signed_is_true_for_dtypes_with_negative_values():
    assert gv.is_signed(gv.arange(3))
    assert not gv.zeros(1, dtype=gv.uint8).is_signed()
    assert not gv.zeros(1, dtype=gv.bool).is_signed()


def test_a_single_element_is_zero_or_not():
    assert gv.is_nonzero(gv.ones(1))
    assert not gv.zeros(1, 1).is_nonzero()


@pytest.mark.parametrize(
    ("size", "what"), [(0, "no values"), (2, "more than one value")]
)
def test_several_elements_or_none_are_neither(size, what):
    with pytest.raises(RuntimeError, match=f"with {what} is ambiguous"):
        gv.ones(size).is_nonzero()


def test_is_set_to_is_true_only_for_the_same_elements_in_memory():
    x = gv.ones(3)

    assert x.is_set_to(x.detach())
    assert not x.is_set_to(x[:2])
    assert not x.is_set_to(x.clone())


def test_storage_offset_counts_the_elements_before_a_view():
    x = gv.arange(12).reshape(3, 4)

    assert x[1:, 2:].storage_offset() == 6
    assert gv.ones(2).storage_offset() == 0
