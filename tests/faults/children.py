"""What processes of their own are asked to do; they find it by its name."""

from tests.faults.scene import assert_works, new_engine


def backward() -> str:
    engine = new_engine()
    assert_works(engine)
    engine.stop()
    return "works"
