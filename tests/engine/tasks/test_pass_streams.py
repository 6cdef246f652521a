"""Stream state of one pass; `test_streams` covers whole passes."""

import pytest

from gradviz.backends.stream import Stream, stream_at
from gradviz.engine.graph.input_buffer import Ready
from gradviz.engine.tasks.pass_streams import PassStreams
from tests.engine.accelerator import NOTED_0, NOTED_1

pytestmark = pytest.mark.usefixtures("notebook")


@pytest.mark.parametrize(
    ("streams", "may"),
    [
        ([stream_at(NOTED_0, 0)], True),
        ([stream_at(NOTED_0, 1)], False),
        ([stream_at(NOTED_0, 0), stream_at(NOTED_1, 0)], False),
        ([stream_at(NOTED_0, 0), stream_at(NOTED_0, 1)], False),
    ],
)
def test_only_where_all_is_done_on_the_callers_references_decide(
    streams: list[Stream], may: bool
):
    stream = streams[0]
    streams_of_pass = PassStreams(0, None, streams)

    found = streams_of_pass.may_overwrite(Ready(stream, None, stream, -1))

    assert found is may


def test_a_sum_that_nobody_has_seen_may_always_be_overwritten():
    stream = stream_at(NOTED_0, 1)
    summed = Ready(stream, None, stream, -1, is_sum=True)

    assert PassStreams(0, None, [stream]).may_overwrite(summed)
