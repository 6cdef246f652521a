import gc

import pytest

import gradviz as gv
from gradviz.autograd.graph import allow_mutation_on_saved_tensors


@pytest.fixture
def a():
    return gv.tensor([1.0, 2.0], requires_grad=True)


def test_a_saved_tensor_is_copied_before_it_changes(a):
    with allow_mutation_on_saved_tensors() as copies:
        b = a.clone()
        square = (b**2).sum()
        b.sin_()
        num_copies = len(copies.cloned)
        square.backward()

    assert num_copies == 1
    assert a.grad.tolist() == [2.0, 4.0]


def test_a_change_through_a_view_counts(a):
    with allow_mutation_on_saved_tensors() as copies:
        b = a.clone()
        square = (b**2).sum()
        b[:1].mul_(100)
        num_copies = len(copies.cloned)
        square.backward()

    assert num_copies == 1
    assert a.grad.tolist() == [2.0, 4.0]


def test_a_tensor_saved_twice_is_copied_once(a):
    with allow_mutation_on_saved_tensors() as copies:
        b = a.clone()
        product = (b * b).sum()
        b.mul_(2)
        num_copies = len(copies.cloned)
        product.backward()

    assert num_copies == 1
    assert a.grad.tolist() == [2.0, 4.0]


def test_a_saved_tensor_that_does_not_change_is_not_copied(a):
    with allow_mutation_on_saved_tensors() as copies:
        (a.exp() ** 2).sum().backward()
        assert len(copies.cloned) == 0

    assert a.grad is not None


def test_copies_go_with_their_graph(a):
    with allow_mutation_on_saved_tensors() as copies:
        b = a.clone()
        square = b**2
        b.mul_(2)
        assert len(copies.cloned) == 1
        del square
        gc.collect()
        assert len(copies.cloned) == 0


def test_a_tensor_saved_by_the_in_place_op_itself_is_safe(a):
    with allow_mutation_on_saved_tensors() as copies:
        b = a.clone().sin_()
        assert len(copies.cloned) == 0
        b.sum().backward()

    assert a.grad.tolist() == a.detach().cos().tolist()


def test_each_version_has_a_copy_of_its_own(a):
    with allow_mutation_on_saved_tensors() as copies:
        b = a.clone()
        first = b**2
        b.mul_(2)
        second = b**2
        b.mul_(2)
        assert len(copies.cloned) == 2
        del first
        assert len(copies.cloned) == 1
        del second
        assert len(copies.cloned) == 0


def test_outside_of_the_block_there_is_no_way_back(a):
    with allow_mutation_on_saved_tensors():
        square = (a**2).sum()

    with pytest.raises(AssertionError, match="backward outside of the 'allow_mut"):
        square.backward()


def test_blocks_do_not_nest():
    with (
        allow_mutation_on_saved_tensors(),
        pytest.raises(RuntimeError, match="contexts cannot be nested"),
        allow_mutation_on_saved_tensors(),
    ):
        pass
