"""Recordings whose bytes are made here, and not by an engine."""

from gradviz.trace.events import KINDS, own_columns
from gradviz.trace.format.clock import ClockPair
from gradviz.trace.format.columns import encode_events, tabulate
from gradviz.trace.format.definitions import Closed, Definitions, encode_json
from gradviz.trace.format.frames import FrameType, encode_frame, pack
from gradviz.trace.format.model import Header
from gradviz.trace.format.row_layouts import LAYOUTS

NOW = ClockPair(monotonic_ns=1, wall_ns=2)


def of_every_kind() -> bytes:
    """Two events of every kind: of small numbers, and of the largest there may be."""
    tables, num = [], 0
    for code, kind in KINDS.items():
        own = [
            0 if one.type is str or hasattr(one.type, "__members__") else 1
            for one in own_columns(kind)
        ]
        large = [
            2**63 - 1 if one.type is int and one.name != "sequence_nr" else small
            for one, small in zip(own_columns(kind), own, strict=True)
        ]
        rows = [code, -1, -1, *own, code + 1000, 7, 2**63 - 1, *large]
        tables.append(tabulate(LAYOUTS[kind], rows))
        num += 2
    texts = encode_json(Definitions(strings=[(0, "é\n\u2028")], threads=[(0, "main")]))
    frames = [
        encode_frame(FrameType.HEADER, encode_json(Header(version=(1, 0), clock=NOW))),
        encode_frame(FrameType.DEFINITIONS, pack(texts)),
        *(
            encode_frame(FrameType.EVENTS, pack(one))
            for one in encode_events(0, tables)
        ),
        encode_frame(FrameType.CLOSED, encode_json(Closed(num, 0, 0))),
    ]
    return b"".join(frames)
