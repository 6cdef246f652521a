"""Numbering: which frames of a recording a file holds, and which it should.

Each frame but the header is stamped with a number that its recording drew and with how
many frames came before it. So a frame that is missing leaves a hole, one that was put
in belongs to another recording, and one that is there twice has been seen.
"""

import itertools
from collections.abc import Iterator
from typing import Final

from gradviz.trace.frames import DamageError, Stamp

#: Holes are told one by one up to this many.
_MAX_HOLES: Final = 10


class Numbering:
    """What is known of the numbers of a file's frames.

    Args:
        recording: What the header says; -1 for an older trace, whose frames have no
            numbers.
    """

    def __init__(self, recording: int) -> None:
        self._recording = recording
        self._seen = {0}  # the header
        self._last = 0

    def take(self, stamp: Stamp | None) -> str:
        """Take the next frame's stamp, and say what is wrong with its place, if it is.

        Raises:
            DamageError: The frame does not belong here.
        """
        if self._recording < 0:
            return ""
        if stamp is None or stamp.recording != self._recording:
            raise DamageError("it belongs to another recording")
        if stamp.number in self._seen:
            raise DamageError(f"it is frame {stamp.number} once more")
        self._seen.add(stamp.number)
        is_late = stamp.number < self._last
        self._last = max(self._last, stamp.number)
        return f"frame {stamp.number} is not in its place" if is_late else ""

    def missing(self) -> Iterator[str]:
        """What is missing before the last frame that is there, in words.

        A recorder that is done says so in its last frame: then nothing is missing
        after it.
        """
        if self._recording < 0:
            return
        numbers = sorted(self._seen)
        holes = [
            (number + 1, end)
            for number, end in itertools.pairwise(numbers)
            if number + 1 < end
        ]
        for begin, end in holes[:_MAX_HOLES]:
            yield (
                f"frame {begin} is missing"
                if end - begin == 1
                else f"frames {begin} to {end - 1} are missing"
            )
        more = sum(end - begin for begin, end in holes[_MAX_HOLES:])
        if more:
            yield f"{more} more frames are missing"
