import pytest

from gradviz.backends.simulated import by_kernel, fixed, randomly


def test_a_fixed_latency_is_the_same_for_all():
    latency = fixed(5)

    assert {latency("sim:0/0", "add"), latency("sim:1/2", "exp")} == {5}


def test_kernels_may_differ():
    latency = by_kernel({"exp": 7}, other=2)

    assert (latency("sim:0/0", "exp"), latency("sim:0/0", "add")) == (7, 2)


def test_a_random_latency_is_that_of_the_seed_for_each_stream():
    def drawn(seed):
        latency = randomly(seed, 1000)
        one = [latency("sim:0/0", "add") for _ in range(20)]
        other = [latency("sim:0/1", "add") for _ in range(20)]
        return one, other

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    one, other = drawn(1)
    assert one != other
    assert 0 <= min(one) < max(one) <= 1000

    # Who else draws in between changes nothing.
    mixed = randomly(1, 1000)
    taken = [(mixed("sim:0/0", ""), mixed("sim:0/1", ""))[0] for _ in range(20)]
    assert taken == one


@pytest.mark.parametrize(
    "make", [lambda: fixed(-1), lambda: randomly(0, -1), lambda: by_kernel({"a": -1})]
)
def test_no_kernel_takes_less_than_no_time(make):
    with pytest.raises(ValueError, match="got a latency of -1 ns, expected 0 or more"):
        make()
