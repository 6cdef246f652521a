import pytest

from gradviz.analysis.thread_owners import by_owner, name_at, owner_of
from gradviz.trace.model import ThreadDefinition


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("worker 1 / call 2", "worker 1"),
        ("pid 47 / worker 0 / main", "pid 47 / worker 0"),
        ("MainThread", ""),
    ],
)
def test_a_name_says_whose_a_thread_is(name, owner):
    assert owner_of(name) == owner


def test_threads_of_one_worker_are_together_and_those_of_none_last(story):
    names = ["worker 10 / call", "gv_autograd_0", "worker 2 / b", "worker 10 / a"]
    trace = story.trace()
    trace.threads = {
        number: ThreadDefinition(number, name) for number, name in enumerate(names)
    }

    assert by_owner(trace, [4, 3, 2, 1, 0]) == [2, 0, 3, 1, 4]


def test_beside_its_owner_a_queue_has_its_own_name():
    assert name_at("worker 1", "worker 1 / caller 3") == "caller 3"
    assert name_at("worker 1", "worker 12 / caller 3") == "worker 12 / caller 3"
    assert name_at("", "caller 3") == "caller 3"
