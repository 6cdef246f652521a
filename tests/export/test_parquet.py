"""Parquet, read with pyarrow."""

import io
import json

import pyarrow.compute
import pyarrow.parquet
import pytest

from gradviz.errors import MissingToolError
from gradviz.export import parquet
from gradviz.export.tables import BATCH, TABLES
from gradviz.trace.reading.reader import parse_trace
from tests.export.recordings import of_every_kind


def read(trace, table="runs"):
    return pyarrow.parquet.read_table(io.BytesIO(b"".join(parquet.parts(trace, table))))


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_read_back(name):
    trace = parse_trace(of_every_kind())
    table = TABLES[name]
    told = [row for batch in table.batches(trace) for row in batch]

    found = read(trace, name)
    assert found.column_names == [field.name for field in table.fields]
    assert [tuple(row.values()) for row in found.to_pylist()] == told


def test_pyarrow_says_which_node_waited_longest(trace):
    runs = read(trace)
    longest = runs.sort_by([("waited_ns", "descending")]).slice(0, 1).to_pylist()[0]
    told = [row for batch in TABLES["runs"].batches(trace) for row in batch]

    place = [field.name for field in TABLES["runs"].fields].index("waited_ns")
    assert longest["waited_ns"] == max(row[place] or 0 for row in told)
    assert pyarrow.compute.max(runs["waited_ns"]).as_py() == longest["waited_ns"]


def test_a_file_says_what_its_trace_lost(pair):
    story, *_ = pair
    whole = story.contents()

    def metadata(trace):
        return json.loads(read(trace).schema.metadata[b"gradviz"])

    assert metadata(parse_trace(whole))["is_complete"]
    assert metadata(parse_trace(whole[:-7]))["losses"]["truncated"]


def test_long_tables_are_written_in_several_parts(story):
    nodes = [story.node(one) for one in range(BATCH + 1)]
    story.begin(7, nodes, at=0)
    trace = story.trace()

    assert read(trace, "nodes").num_rows == BATCH + 1
    assert sum(map(bool, parquet.parts(trace, "nodes"))) > 1


def test_without_pyarrow_it_says_how_to_get_it(pair, monkeypatch):
    monkeypatch.setattr(parquet, "HAS_PYARROW", False)

    with pytest.raises(MissingToolError, match=r"pip install 'gradviz\[parquet\]'"):
        next(parquet.parts(pair[0].trace(), "runs"))
