"""Following a file that is still being written.

`follow` gives its events as they come; a `GrowingTrace` is all of it, again and again.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from gradviz.errors import TraceError
from gradviz.trace.format.frames import MAGIC, Budget, Frame, Gap, scan
from gradviz.trace.format.model import Trace
from gradviz.trace.reading.reader import Parser, header_of, open_trace

#: Number of bytes read at once.
_CHUNK: Final = 8 << 20

#: By so many bytes of its begin a file is known again: by the checksum of its header.
_KNOWN_BY: Final = 64


def follow(path: Path, wait: Callable[[], None]) -> Iterator[Trace]:
    """Yield a file's contents, then additions, until its recorder is done.

    Each trace has all definitions so far, and the new events. Events that were written
    together, those reported within a flush of the writer, are in order of time. Their
    `seq` goes on counting. `losses` are those of the file so far, which is not closed
    before the last trace.

    Args:
        path: The file; it may still be empty.
        wait: Returns when it is time to look again; called when nothing is new.

    Raises:
        TraceError: It is not a trace, or was cut, removed or replaced meanwhile.
    """
    parser = None
    budget = Budget(0)
    with open_trace(path) as file:
        for pieces in _pieces(file, budget):
            if parser is None and pieces:
                begin = _first_bytes(file, _CHUNK)
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


class GrowingTrace:
    """A file that may still be growing, read whole on each request.

    Only what is new is read and decoded; what was there is put in the order of time
    with it. Where there is another file, or a shorter one, that is read from its start.

    Args:
        path: The file.
    """

    _parser: Parser | None
    _belongs: bool  # whether what comes is still of this trace

    def __init__(self, path: Path) -> None:
        self._path = path
        self._forget()

    def read(self) -> Trace:
        """Return the current contents of the file, as `load_trace` would.

        Raises:
            TraceError: As `load_trace`.
        """
        with open_trace(self._path) as file:
            if not self._goes_on(file):
                self._forget()
            file.seek(self._unread.end)
            new = file.read()
            pieces = self._unread.take(new)
            self._budget.grow(len(new))
            if self._parser is None:
                self._begin = new[:_KNOWN_BY]
                first = pieces.pop(0) if pieces else self._unread.tail()
                header = header_of(repr(str(self._path)), new, first)
                self._parser = Parser(header, self._budget, keeps=True)
        if self._belongs:
            self._belongs = all(map(self._parser.take, pieces))
        is_cut = self._belongs and self._unread.tail() is not None
        return self._parser.trace(self._path, is_cut=is_cut)

    def _forget(self) -> None:
        self._unread = _Unread()
        self._budget = Budget(0)
        self._parser = None
        self._belongs = True
        self._begin = b""

    def _goes_on(self, file: BinaryIO) -> bool:
        """Return whether it is the same file as before, and at least as long."""
        begin = _first_bytes(file, len(self._begin))
        is_whole = os.fstat(file.fileno()).st_size >= self._unread.end
        return self._parser is not None and is_whole and begin == self._begin


class _Unread:
    """Bytes of a file that do not form a whole piece yet.

    Attributes:
        end: Number of bytes that have arrived.
    """

    def __init__(self) -> None:
        self.end = 0
        self._left = b""

    def take(self, new: bytes) -> list[Frame | Gap]:
        """Return the pieces that are complete with the new bytes."""
        data = self._left + new
        begin = self.end - len(self._left)
        pieces = list(scan(data)) if new else []
        end = len(data) if new else 0
        if pieces and isinstance(last := pieces[-1], Gap):
            end = _next_begin(data, last)
            if begin + last.offset == 0 and not last.is_tail:
                end = len(data)  # no frame begins the file: it is not a trace
            pieces[-1:] = [last._replace(size=end - last.offset)] * (end > last.offset)
        self.end += len(new)
        self._left = data[end:]
        return [one._replace(offset=one.offset + begin) for one in pieces]

    def tail(self) -> Gap | None:
        """Return the remaining gap, if nothing more arrives."""
        size = len(self._left)
        return Gap(self.end - size, size, is_tail=True) if size else None


def _pieces(file: BinaryIO, budget: Budget) -> Iterator[list[Frame | Gap]]:
    """Yield the complete pieces that have arrived since the last look, forever."""
    unread = _Unread()
    while True:
        new = file.read(_CHUNK)
        budget.grow(len(new))
        yield unread.take(new)


def _first_bytes(file: BinaryIO, size: int) -> bytes:
    """Return the first bytes of a file, and leave its position as it is."""
    position = file.tell()
    file.seek(0)
    begin = file.read(size)
    file.seek(position)
    return begin


def _next_begin(data: bytes, gap: Gap) -> int:
    """Return where in a gap at the end of `data` an incomplete frame may begin."""
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
