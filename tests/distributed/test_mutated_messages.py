"""Messages of a peer that has the key and says what no worker would say."""

import random

import numpy as np
import pytest

from gradviz.distributed.calling.worker import RpcWorker
from gradviz.distributed.messaging.failures import PeerDownError, RpcError
from gradviz.distributed.messaging.future import completed
from gradviz.distributed.messaging.messages import (
    AbortPass,
    AskUnfed,
    AutogradMetadata,
    Call,
    Drop,
    Fetch,
    Greet,
    Greeting,
    Hold,
    JoinContext,
    Leave,
    PropagateGradients,
    ReleaseContext,
    as_meta,
    from_meta,
)
from gradviz.engine import default_engine
from gradviz.engine.graph.sync import THREADS
from tests.distributed import called
from tests.distributed.sockets import LocalNetwork
from tests.distributed.waiting import PATIENCE_SECONDS, is_clean, until

OWN = 1 << 48  # an id of the peer
METADATA = AutogradMetadata(context_id=OWN, message_id=OWN)

#: What a worker would say.
MESSAGES = [
    Call(
        function=f"{called.__name__}.add",
        arguments=["tuple", ["tuple", ["tensor", 0, True], 2], ["dict", ["k", 1]]],
        autograd=METADATA,
    ),
    Call(
        function=f"{called.__name__}.same",
        arguments=["tuple", ["tuple", ["tensor", 0, True], ["bytes", 1]], ["dict"]],
        autograd=METADATA,
    ),
    Call(
        function=f"{called.__name__}.same",
        arguments=["tuple", ["tuple", ["rref", 1, OWN, -1]], ["dict"]],
        rref=OWN + 1,
    ),
    Fetch(rref=OWN + 1, autograd=METADATA),
    Hold(rref=OWN + 1, fork=OWN + 2),
    Drop(rref=OWN + 1, fork=OWN + 2),
    PropagateGradients(
        context_id=OWN, message_id=0, pass_id=OWN + 1, retain_graph=True
    ),
    AbortPass(context_id=OWN, pass_id=OWN + 1, reason="it failed"),
    AskUnfed(context_id=OWN, pass_id=OWN + 1),
    JoinContext(context_id=OWN),
    ReleaseContext(context_id=OWN),
    Greet(),
    Leave(),
]

#: What is said instead.
OTHERS = [
    *(None, True, -1, 0, 1, 2, 3, OWN, OWN + 1, 2 * OWN, 9 * OWN, -OWN, 2**63 - 1),
    *(0.5, 1e308, "", "\x00", "Call", "Fetch", "tests.distributed.called.same"),
    *([], {}, ["tensor", 0, True], ["array", 9], ["bytes", -1], ["rref", 7, 1, 1]),
    *(["int", "9" * 5000], ["float", "x"], ["dict", [["list"], 1]], ["complex", "a"]),
]


def mutated(chance, value, strength):
    """The same, but for some parts of it."""
    if chance.random() < strength:
        return chance.choice(OTHERS)
    if isinstance(value, dict):
        changed = {key: mutated(chance, one, strength) for key, one in value.items()}
        if changed and chance.random() < strength:
            changed.pop(chance.choice([*changed]))
        return changed
    if isinstance(value, list):
        return [mutated(chance, one, strength) for one in value]
    return value


def check(seed, num):
    """Have a worker hear some of it; it answers, lives, and forgets."""
    chance = random.Random(seed)
    with LocalNetwork(2) as network:
        peer = network.transports[1]
        peer.start(
            lambda *_: completed(THREADS, (as_meta(Greeting(name="peer")), ())),
            lambda *_: None,
        )
        worker = RpcWorker("victim", network.transports[0], default_engine())
        try:
            worker.meet(PATIENCE_SECONDS)
            asked = []
            for _ in range(num):
                meta = as_meta(chance.choice(MESSAGES))
                meta = {
                    key: mutated(chance, one, 0.08)
                    if key != "type" or chance.random() < 0.05
                    else one
                    for key, one in meta.items()
                }
                arrays = [np.ones(2), np.zeros(3, np.uint8)]
                future = peer.request(0, meta, arrays[: chance.choice([0, 1, 2, 2])])
                asked.append((meta, future))
            answer, _ = peer.request(0, as_meta(Greet())).wait(PATIENCE_SECONDS)
            assert from_meta(answer) == Greeting(name="victim")
            for meta, future in asked:
                if str(meta.get("type")) not in {"Leave", "Fetch"}:  # they may wait
                    assert future.settled(PATIENCE_SECONDS), meta
                    assert not isinstance(future.error, PeerDownError), meta
            network.kill(1)
            until(lambda: is_clean(worker))
        finally:
            worker.close()


@pytest.mark.parametrize("seed", range(3))
def test_mutated_messages_are_refused_and_leave_nothing(seed):
    check(seed, 200)


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(3, 23))
def test_many_mutated_messages_are_refused_and_leave_nothing(seed):
    check(seed, 1000)


@pytest.mark.parametrize("owner", [0, 2, -1, 2**14])
def test_a_context_that_its_maker_never_made_is_refused(owner):
    with LocalNetwork(2) as network:
        peer = network.transports[1]
        peer.start(
            lambda *_: completed(THREADS, (as_meta(Greeting(name="peer")), ())),
            lambda *_: None,
        )
        worker = RpcWorker("victim", network.transports[0], default_engine())
        try:
            worker.meet(PATIENCE_SECONDS)
            bad = AutogradMetadata(context_id=owner << 48, message_id=OWN)
            call = Call(
                function=f"{called.__name__}.same",
                arguments=["tuple", ["tuple", ["tensor", 0, True]], ["dict"]],
                autograd=bad,
            )
            asked = peer.request(0, as_meta(call), [np.ones(1)])
            with pytest.raises(RpcError, match="autograd context"):
                asked.wait(PATIENCE_SECONDS)
            assert len(worker.container) == 0
        finally:
            worker.close()
