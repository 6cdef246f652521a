import pytest

from tests.distributed.company import Company

#: More orders than one take their time.
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.stress) for seed in range(1, 10))]


@pytest.fixture(params=SEEDS)
def company(request):
    """Several workers, whose threads run in one of several orders."""
    return Company(request.param)
