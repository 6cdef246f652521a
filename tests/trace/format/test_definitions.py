import inspect

import msgspec
import numpy as np
import pytest

from gradviz.trace.format import clock, definitions, model
from gradviz.trace.format.clock import ClockPair
from gradviz.trace.format.definitions import (
    Definitions,
    InputRow,
    ModelRow,
    NodeRow,
    ParameterRow,
    QueueRow,
    decode_json,
    describe_process,
    encode_definitions,
    encode_json,
)
from gradviz.trace.format.frames import DamageError

EVERYTHING = Definitions(
    strings=[(0, "a"), (7, "b")],
    threads=[(0, "MainThread")],
    queues=[QueueRow(1, "caller 0", -1)],
    inputs=[InputRow(0, (2, 3), 0, 7)],
    nodes=[NodeRow(5, 0, 4, 3, 7, (2, 0, -1, 0), (0, -1))],
    models=[ModelRow(0, 2, (ParameterRow(7, (2, 3), 0, 7, True),))],
)


STRUCTS = [
    one
    for module in (clock, definitions, model)
    for one in vars(module).values()
    if isinstance(one, type) and issubclass(one, msgspec.Struct)
]


@pytest.mark.parametrize("kind", STRUCTS, ids=lambda kind: kind.__name__)
def test_the_structures_of_a_trace_are_frozen(kind):
    assert kind.__struct_config__.frozen


@pytest.mark.parametrize(
    "kind", [ClockPair, model.Header, model.Losses, model.NodeDefinition]
)
def test_structures_with_many_fields_take_them_by_name_only(kind):
    parameters = inspect.signature(kind).parameters.values()

    assert {one.kind for one in parameters} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize(
    ("index", "is_one"), [(-1, False), (0, True), (2**31 - 1, True), (2**31, False)]
)
def test_an_index_has_31_bits(index, is_one):
    """A count of them fits into any column, then."""
    payload = b'{"strings":[[%d,"a"]]}' % index

    if is_one:
        assert decode_json(payload, Definitions).strings == [(index, "a")]
    else:
        with pytest.raises(DamageError):
            decode_json(payload, Definitions)


def test_definitions_survive():
    (piece,) = encode_definitions(EVERYTHING)

    assert decode_json(piece, Definitions) == EVERYTHING


def test_no_definitions_make_no_frame():
    assert list(encode_definitions(Definitions())) == []


def test_many_definitions_are_written_in_pieces():
    strings = [(number, "x" * 1_000) for number in range(3_000)]
    nodes = [NodeRow(number, 0, 0, 0, 0, (), ()) for number in range(40_000)]
    pieces = list(encode_definitions(Definitions(strings=strings, nodes=nodes)))
    read = [decode_json(piece, Definitions) for piece in pieces]

    assert max(map(len, pieces)) < 600_000
    assert [row for one in read for row in one.strings] == strings
    assert [row for one in read for row in one.nodes] == nodes


def test_one_long_definition_is_written_as_it_is():
    edges = tuple(number for number in range(200_000) for _ in "ab")
    node = NodeRow(5, 0, 0, 0, 0, edges, ())
    (piece,) = encode_definitions(Definitions(nodes=[node]))

    assert decode_json(piece, Definitions).nodes == [node]


def test_definitions_too_large_for_a_reader_are_left_out(monkeypatch):
    monkeypatch.setattr("gradviz.trace.format.definitions._MAX_FRAME", 100)
    monkeypatch.setattr("gradviz.trace.format.definitions.MAX_UNPACKED", 1_000)
    strings = [(0, "x" * 2_000), (1, "y")]
    pieces = list(encode_definitions(Definitions(strings=strings)))

    assert [decode_json(piece, Definitions).strings for piece in pieces] == [[(1, "y")]]


def test_numbers_of_numpy_are_numbers():
    row = NodeRow(5, 0, 0, 0, 0, (np.int64(3), np.int32(1)), ())

    assert decode_json(encode_json(row), NodeRow).edges == (3, 1)


def test_a_row_with_an_object_in_place_of_a_number_is_refused():
    with pytest.raises(TypeError):
        encode_json(NodeRow(5, 0, 0, 0, 0, [object()], []))


def test_invalid_json_is_reported_as_damage():
    with pytest.raises(DamageError, match="cannot be read"):
        decode_json(b"{", Definitions)


def test_no_definition_is_read_from_a_type_named_in_a_file():
    struct = decode_json(b'{"strings":[],"type":"os.system"}', Definitions)

    assert struct == Definitions()


@pytest.mark.parametrize(
    ("rank", "expected"), [("3", 3), ("", -1), ("x", -1), ("-1", -1), ("9" * 30, -1)]
)
def test_the_rank_is_that_of_the_environment(monkeypatch, rank, expected):
    monkeypatch.setenv("RANK", rank)

    assert describe_process(ClockPair(monotonic_ns=1, wall_ns=2)).rank == expected


def test_a_process_with_strange_arguments_can_be_described(monkeypatch):
    monkeypatch.setattr("sys.argv", ["\udcff.py", "x" * 100_000])
    header = describe_process(ClockPair(monotonic_ns=1, wall_ns=2))

    assert len(msgspec.json.encode(header)) < 10_000
    assert header.argv[0] == "\\udcff.py"
