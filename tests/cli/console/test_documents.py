import json

import pytest

from gradviz.cli.console import documents
from gradviz.cli.console.documents import json_pieces


@pytest.mark.parametrize("length", [0, 1, 3, 4, 6, 7])
def test_a_long_list_is_written_piece_by_piece(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_IN_PIECE", 3)
    rows = [{"name": "é\ud800", "at": [one, None]} for one in range(length)]
    document = {"schema": "x", "rows": rows, "by": {"1": [1]}, "more": rows}

    pieces = [*json_pieces(document)]

    assert "".join(pieces) == json.dumps(document)
    assert max(piece.count("name") for piece in pieces) == min(length, 3)
