"""Programs for child processes, found by their names."""

from tests.faults.scene import assert_works, new_engine


def backward() -> str:
    engine = new_engine()
    assert_works(engine)
    engine.stop()
    return "works"
