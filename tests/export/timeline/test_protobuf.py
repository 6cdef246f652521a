import pytest
from google.protobuf import wrappers_pb2
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

from gradviz.export.timeline.protobuf import fixed64, integer, message, text


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -(2**63)])
def test_an_integer_is_read_back(value):
    assert wrappers_pb2.Int64Value.FromString(integer(1, value)).value == value


def test_a_message_in_a_message_is_read_back():
    event = message(11, text(23, "é"), fixed64(47, 2**64 - 1), integer(11, 2**64 - 1))
    packet = proto.TracePacket.FromString(event)

    assert packet.track_event.name == "é"
    assert packet.track_event.flow_ids == [2**64 - 1]
    assert packet.track_event.track_uuid == 2**64 - 1
