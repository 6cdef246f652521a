"""Who is told of the actors that a program starts: a place that costs nothing to load.

Most programs have none, and ``gradviz run`` need not load `gradviz.distributed` for
them.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

#: Called with the boxes of the workers that one `spawn` starts. What it returns is
#: entered before they run, and left when all have ended or the program is interrupted,
#: before their processes end.
around_actors: Final[list[Callable[[Sequence[Any]], AbstractContextManager[None]]]] = []
