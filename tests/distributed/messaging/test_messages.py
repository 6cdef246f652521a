import json
import subprocess
import sys

import pytest

from gradviz.distributed.messaging.messages import (
    AutogradMetadata,
    Call,
    Done,
    PropagateGradients,
    as_meta,
    from_meta,
)


@pytest.mark.parametrize(
    "message",
    [
        Done(),
        Call(function="f", arguments=["tuple"], autograd=AutogradMetadata(1, 2)),
        PropagateGradients(
            context_id=2**63, message_id=2**64 - 1, pass_id=1, retain_graph=True
        ),
    ],
)
def test_a_message_is_the_same_after_it_was_sent(message):
    assert from_meta(json.loads(json.dumps(as_meta(message)))) == message


@pytest.mark.parametrize(
    "meta", [None, {}, {"type": "Nothing"}, {"type": "Call"}, {"type": "Call", "n": 1}]
)
def test_metadata_that_is_no_message_is_refused(meta):
    with pytest.raises(ValueError, match="not a message"):
        from_meta(meta)


def test_a_message_does_not_change():
    with pytest.raises(AttributeError):
        Done().function = "f"


@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.stress)])
def test_threads_may_read_their_first_messages_at_the_same_time(times):
    """A process of its own each time: what was looked at once is known after that."""
    program = """
import sys, threading
from gradviz.distributed.messaging.messages import from_meta
sys.setswitchinterval(1e-6)
at_once = threading.Barrier(6)
def read():
    at_once.wait()
    from_meta({"type": "Greet"})
threads = [threading.Thread(target=read) for _ in range(6)]
for one in threads: one.start()
for one in threads: one.join()
"""
    for _ in range(times):
        done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
        assert done.returncode == 0
