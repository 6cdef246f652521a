import pytest

from gradviz.trace.buffer import MANY, WHOLE
from gradviz.trace.events import NodeCreated, TaskPushed
from gradviz.trace.joined import (
    LAYOUTS,
    NODE_PASSED_ON,
    NODE_READIED,
    NODE_RECORDED,
)
from gradviz.trace.node_rows import NodeRows, Origins, node_clocks
from gradviz.trace.processor_time import ThreadTime


@pytest.mark.parametrize(
    ("report", "key", "arguments"),
    [
        ("node_passed_on", NODE_PASSED_ON, (0, 1, 8, 2, 0, 8, 0, 0, 1, 1, 1)),
        ("node_readied", NODE_READIED, (0, 2, 1, 0, 8, 0, 0, 0, 1, 1, 1)),
        ("task_pushed", TaskPushed, (0, 2, 0, 0, 1, 1, 1, 1, 0)),
        ("node_created", NodeCreated, ()),
        ("node_recorded", NODE_RECORDED, (8,)),
    ],
)
def test_rows_that_have_become_many_call_the_writer(make_node, report, key, arguments):
    rows = {one: [] for one in LAYOUTS}
    called = []
    clocks, origins = node_clocks(lambda: 5), Origins(lambda: 0, None, None)
    here = NodeRows(rows, ThreadTime(None), clocks, called.append, origins)
    if key in {NodeCreated, NODE_RECORDED}:
        arguments = (make_node(1), *arguments)

    num_reports = 0
    while not called:
        getattr(here, report)(*arguments)
        num_reports += 1

    num_numbers = num_reports * LAYOUTS[key].width
    assert num_numbers == pytest.approx(MANY, rel=0.1)
    assert called == pytest.approx([MANY], rel=0.01)
    assert len(rows[key]) == (num_reports if key in WHOLE else num_numbers)
