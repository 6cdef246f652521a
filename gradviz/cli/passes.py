"""The passes that a command is about, one after the other."""

from collections.abc import Iterator

from gradviz.analysis.passes import select_task
from gradviz.cli.notes import note
from gradviz.trace.model import Trace


def each_pass(trace: Trace, task: str, most: int) -> Iterator[int]:
    """The passes that ``--task`` means; of those beyond `most`, a note says so at last.

    Raises:
        UserError: There is none.
    """
    tasks = select_task(trace, task)
    yield from tasks[:most]
    if len(tasks) > most:
        note(f"{most:,} passes of {len(tasks):,} are shown, the first ones")
