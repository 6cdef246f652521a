import pytest

from gradviz.distributed.backward import container as module
from gradviz.distributed.backward.container import DistAutogradContainer
from gradviz.distributed.backward.functions import SendRpcBackward
from gradviz.engine.graph.sync import THREADS


@pytest.fixture
def container():
    return DistAutogradContainer(3, THREADS)


def send():
    return SendRpcBackward([], [], message_id=5, peer=1, function="f")


def test_contexts_and_messages_are_numbered_each_by_themselves(container):
    first = container.new_context()
    container.release_context_if_present(first.context_id)
    second = container.new_context()
    container.release_context_if_present(second.context_id)

    assert (first.context_id, second.context_id) == (3 << 48, (3 << 48) + 1)
    assert container.new_message_id() == 3 << 48


def test_a_thread_is_in_the_context_of_one_worker_and_not_of_another(container):
    other = DistAutogradContainer(4, THREADS)
    context = container.new_context()

    assert container.current_context() is context
    assert other.current_id() is None
    container.release_context_if_present(context.context_id)
    with pytest.raises(RuntimeError, match="doesn't have a valid autograd context"):
        container.current_context()


def test_a_context_that_is_gone_is_not_made_anew(container):
    container.release_context_if_present(7)

    with pytest.raises(RuntimeError, match="released before a call"):
        container.get_or_create_context(7)
    assert len(container) == 0


def test_only_the_newest_ids_of_released_contexts_are_remembered(
    container, monkeypatch
):
    monkeypatch.setattr(module, "MAX_TOMBSTONES", 2)
    for context_id in range(3):
        container.release_context_if_present(context_id)

    assert container.get_or_create_context(0).context_id == 0
    with pytest.raises(RuntimeError, match="released before a call"):
        container.get_or_create_context(1)


def test_others_are_told_once(container):
    told = []
    container.after_release = told.append
    context = container.get_or_create_context(1)
    container.release_context_if_present(1)
    container.release_context_if_present(1)

    assert told == [context]
    with pytest.raises(RuntimeError, match="Could not find autograd context"):
        container.retrieve_context(1)


def test_a_context_knows_what_was_sent_by_the_number_of_its_message(container):
    context = container.get_or_create_context(1)
    function = send()
    context.add_send_function(5, function)

    assert context.retrieve_send_function(5) is function
    with pytest.raises(
        RuntimeError, match="Could not find send function for autograd message id: 6"
    ):
        context.retrieve_send_function(6)


def test_a_pass_that_has_ended_takes_those_before_it_with_it(container):
    context = container.get_or_create_context(1)

    assert context.mark_ended((2 << 48) + 5)
    assert context.has_ended((2 << 48) + 4)
    assert not context.mark_ended((2 << 48) + 5)
    assert not context.has_ended((2 << 48) + 6)
    assert not context.has_ended((1 << 48) + 5)
