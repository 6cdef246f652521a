"""Pages read back, as `source/data.ts` reads them."""

import gzip
import json
from typing import Any

import numpy as np
import pytest


def read(data: bytes) -> tuple[dict[str, Any], dict[str, list[int]]]:
    plain = gzip.decompress(data)
    begin = 4 + int.from_bytes(plain[:4], "little")
    told = json.loads(plain[4:begin])
    columns = {}
    for name, (stored, is_delta, length, offset) in told["columns"].items():
        numbers = np.frombuffer(plain, f"<{stored}", length, begin + offset)
        summed = np.cumsum(numbers, dtype=np.int64) if is_delta else numbers
        columns[name] = summed.astype(np.int64).tolist()
    return told["header"], columns


@pytest.fixture
def unpacked():
    return read
