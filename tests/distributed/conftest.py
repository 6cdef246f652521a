import pytest

from tests.distributed.boxes import three_nodes
from tests.distributed.company import Company
from tests.distributed.connected import Connected

#: More orders than one take their time.
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.stress) for seed in range(1, 10))]


@pytest.fixture(params=SEEDS)
def scheduled(request):
    """Several workers, whose threads run in one of several orders."""
    return Company(request.param)


@pytest.fixture(params=[*SEEDS, "unix", pytest.param("tcp", marks=pytest.mark.stress)])
def company(request):
    """The same, or with sockets between them and no order."""
    if isinstance(request.param, int):
        return Company(request.param)
    return Connected(request.param)


@pytest.fixture(scope="session")
def ray_nodes():
    """A Ray cluster of three nodes, all on this machine."""
    yield from three_nodes()
