import json

import pytest

from gradviz.distributed.messages import (
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
def test_what_is_no_message_is_refused(meta):
    with pytest.raises(ValueError, match="not a message"):
        from_meta(meta)


def test_a_message_does_not_change():
    with pytest.raises(AttributeError):
        Done().function = "f"
