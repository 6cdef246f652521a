"""Results of an op."""

import tracemalloc

import gradviz as gv


def peak_of_joining(num_tensors):
    """The most bytes that joining so many tensors takes, for each of them."""
    tensors = [gv.ones(1, requires_grad=True) for _ in range(num_tensors)]
    tracemalloc.start()
    gv.stack(tensors)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / num_tensors


def test_an_op_of_many_tensors_takes_no_more_for_each_than_one_of_few():
    peak_of_joining(10)  # loads what is needed once

    assert peak_of_joining(20_000) < 1.5 * peak_of_joining(2_000)
