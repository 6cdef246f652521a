import tracemalloc

import gradviz as gv


def test_a_chain_of_tanh_goes_backward_with_two_gradients_in_memory():
    x = gv.ones(1 << 16, requires_grad=True)
    y = x
    for _ in range(10):
        y = y.tanh()
    loss = y.sum()

    tracemalloc.start()
    loss.backward()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 2.1 * x.nbytes
