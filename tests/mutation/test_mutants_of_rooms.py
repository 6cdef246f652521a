import pytest

from tests.mutation.__main__ import _rounds, draw


@pytest.fixture(scope="module")
def mutants():
    return draw(10**9, 0)


def test_modules_of_every_depth_are_changed(mutants):
    paths = {mutant.path for mutant in mutants}

    assert "gradviz/engine/engine.py" in paths
    assert "gradviz/engine/tasks/ready_queue.py" in paths
    assert "gradviz/trace/format/frames.py" in paths


def test_the_nearest_tests_come_first(mutants):
    mutant = next(one for one in mutants if one.path.endswith("ready_queue.py"))

    nearest, own, *_ = _rounds(mutant)
    assert nearest == ("tests/engine/tasks/test_ready_queue.py",)
    assert own == ("tests/engine",)
