"""Stories of workers that send each other gradients."""

from tests.analysis.conftest import START_NS


def sent(story, at, task, node, way, pass_id=-1, size=8, context=5):
    """Message `way`: from a worker, to another, its number."""
    story.now = START_NS + at
    story.recorder.message_sent(task, node, *way, context, pass_id, size)


def received(story, at, node, way, pass_id=-1, size=8, context=5):
    story.now = START_NS + at
    worker, peer, message = way
    story.recorder.message_received(
        -1, node, peer, worker, message, context, pass_id, size
    )


def crossing(story, device, *, left=50, came=60):
    """Pass 1 of worker 0 sends gradients from a receive to pass 2 of worker 1."""
    receive = story.node(1, name="RecvRpcBackward")
    send = story.node(2, name="SendRpcBackward")
    sent(story, 1, -1, send.id, (1, 0, 9), size=16)
    received(story, 3, receive.id, (1, 0, 9), size=16)
    story.begin(1, [receive], at=10)
    story.start(1, receive, at=40)
    sent(story, left, 1, receive.id, (0, 1, 9), pass_id=4, size=12)
    device(lambda: received(story, came, send.id, (0, 1, 9), pass_id=4, size=12))
    device(lambda: story.begin(2, [send], at=70))
    device(lambda: story.ran(2, send, at=80, until=85))
    story.complete(1, receive, at=90)
    return story.trace()
