import pytest

from gradviz.distributed.messaging.kept import Kept
from gradviz.engine.graph.sync import THREADS


@pytest.fixture
def kept():
    return Kept(THREADS)


def test_a_future_asked_for_before_its_value_gets_it_later(kept):
    asked = kept.future(1)
    kept.future(1).set_result("value")

    assert asked.wait() == "value"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_value_goes_with_its_last_reference_in_whatever_order_the_news_come(
    kept, order
):
    kept.hold(1, 10)
    kept.future(1).set_result("value")
    news = [lambda: kept.hold(1, 11), lambda: kept.drop(1, 11)]
    for index in order:
        news[index]()
    assert len(kept) == 1

    kept.drop(1, 10)

    assert len(kept) == 0
    with pytest.raises(LookupError, match="nothing is kept as rref 1"):
        kept.future(1)
