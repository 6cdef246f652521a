"""Following: the events of a file that somebody is still writing, as they come."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from gradviz.errors import TraceError
from gradviz.trace.frames import MAGIC, Budget, Frame, Gap, scan
from gradviz.trace.model import Trace
from gradviz.trace.reader import Parser, header_of, open_trace

#: So much is read at once.
_CHUNK: Final = 8 << 20


def follow(path: Path, wait: Callable[[], None]) -> Iterator[Trace]:
    """What a file holds, then what comes, until its recorder says that it is done.

    Each trace has all that is defined by then, and the events that are new. They are in
    the order of time, as far as they were written together: what threads reported
    within a flush of the writer. Their `seq` goes on counting. `losses` are those of
    the file so far, which is not closed before the last trace.

    Args:
        path: The file; perhaps there is nothing in it yet.
        wait: Returns when it is time to look again; called where nothing is new.

    Raises:
        TraceError: It is no trace, or was cut, removed or replaced meanwhile.
    """
    parser = None
    budget = Budget(0)
    with open_trace(path) as file:
        for pieces in _pieces(file, budget):
            if parser is None and pieces:
                begin = os.pread(file.fileno(), _CHUNK, 0)
                header = header_of(repr(str(path)), begin, pieces.pop(0))
                parser = Parser(header, budget)
            elif not pieces:
                _check_is_there(path, file)
                wait()
            if parser is not None:
                belongs = all(map(parser.take, pieces))
                trace = parser.trace(path)
                is_last = parser.is_closed or not belongs
                if trace.num_events or is_last:
                    yield trace
                if is_last:
                    return


def _pieces(file: BinaryIO, budget: Budget) -> Iterator[list[Frame | Gap]]:
    """The whole pieces that have come since the last look, for ever."""
    left, offset = b"", 0
    while True:
        new = file.read(_CHUNK)
        budget.grow(len(new))
        data = left + new
        pieces = list(scan(data)) if new else []
        end = len(data) if new else 0
        if pieces and isinstance(last := pieces[-1], Gap):
            end = _next_begin(data, last)
            if offset + last.offset == 0 and not last.is_tail:
                end = len(data)  # no frame begins the file: it is no trace
            pieces[-1:] = [last._replace(size=end - last.offset)] * (end > last.offset)
        yield [one._replace(offset=one.offset + offset) for one in pieces]
        left, offset = data[end:], offset + end


def _next_begin(data: bytes, gap: Gap) -> int:
    """Where in a gap at the end of `data` a frame may begin whose rest is to come."""
    if gap.is_tail:
        return gap.offset
    found = data.rfind(MAGIC, gap.offset + 1)
    return found if found >= 0 else max(gap.offset, len(data) - len(MAGIC) + 1)


def _check_is_there(path: Path, file: BinaryIO) -> None:
    """Look whether more may come."""
    here = os.fstat(file.fileno())
    try:
        there = path.stat()
    except OSError:
        what = "removed"
    else:
        is_whole = file.tell() <= here.st_size
        if is_whole and os.path.samestat(here, there):
            return
        what = "replaced by another file" if is_whole else "cut"
    raise TraceError(f"{str(path)!r} was {what} while it was followed")
