import math

import pytest

import gradviz as gv


def test_a_maximum_along_a_dimension_says_where_it_was():
    values, indices = gv.tensor([[1.0, 3.0], [5.0, 2.0]]).max(1)

    assert values.tolist() == [3.0, 5.0]
    assert indices.tolist() == [1, 0]
    assert indices.dtype == gv.int64


def test_a_maximum_of_equal_elements_gives_its_gradient_to_the_first():
    x = gv.ones(2, 3, requires_grad=True)

    x.max(1).values.sum().backward()

    assert x.grad.tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


def test_the_maximum_of_all_gives_equal_elements_equal_parts():
    x = gv.tensor([2.0, 1.0, 2.0], requires_grad=True)

    x.max().backward()

    assert x.grad.tolist() == [0.5, 0.0, 0.5]


def test_the_maximum_of_two_tensors_is_taken_element_by_element():
    assert gv.max(gv.tensor([1, 4]), gv.tensor([3, 2])).tolist() == [3, 4]
    assert gv.tensor([1, 4]).min(gv.tensor([3, 2])).tolist() == [1, 2]


def test_sums_of_booleans_and_small_integers_are_int64():
    assert gv.tensor([True, True]).sum().dtype == gv.int64
    assert gv.tensor([200, 200], dtype=gv.uint8).sum().item() == 400


def test_a_mean_of_integers_is_an_error():
    with pytest.raises(RuntimeError, match=r"mean\(\): could not infer output dtype"):
        gv.tensor([1, 2]).mean()


def test_the_mean_of_nothing_is_no_number():
    assert str(gv.zeros(0).mean().item()) == "nan"


def test_numpys_names_of_the_arguments_are_understood():
    x = gv.ones(2, 3)

    assert x.sum(axis=0, keepdims=True).shape == (1, 3)


def test_argmax_finds_the_largest_in_all_or_along_a_dimension():
    x = gv.tensor([[1.0, 3.0], [5.0, 2.0]])

    assert x.argmax().item() == 2
    assert x.argmax(1).tolist() == [1, 0]
    assert x.argmin(0, keepdim=True).tolist() == [[0, 1]]


def test_all_and_any_look_at_every_element():
    x = gv.tensor([[True, False], [True, True]])

    assert not x.all()
    assert x.any()
    assert x.all(1).tolist() == [False, True]


def test_half_precision_is_summed_in_single():
    x = gv.ones(4096, dtype=gv.float16)

    assert x.sum().item() == 4096
    assert x.mean().item() == 1


def test_the_logarithm_of_sums_of_exponentials_does_not_overflow():
    assert gv.tensor([1e4, 1e4]).logsumexp(0).item() == pytest.approx(10000.6931)
    assert gv.tensor([-math.inf, -math.inf]).logsumexp(0).item() == -math.inf
    assert gv.tensor([math.inf, 0.0]).logsumexp(0).item() == math.inf


def test_results_with_names_say_what_they_are():
    smallest, largest = gv.tensor([3.0, 1.0]).aminmax()

    assert (smallest.item(), largest.item()) == (1.0, 3.0)
    assert gv.tensor([3.0, 1.0]).sort().indices.tolist() == [1, 0]


def test_the_mode_is_the_smallest_of_the_most_frequent():
    assert gv.tensor([3, 1, 3, 1, 2]).mode().values.item() == 1
