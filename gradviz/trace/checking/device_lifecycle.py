"""The lifecycle of things on a device: kernels, memory and events of streams.

Each of them begins, is used, and may end, in this order: a kernel is launched before it
accesses an array, and does that before it ran; memory is not used before it is
allocated, or after it is freed; nobody waits for an event that is recorded later. Ids
are never used again, so each begins once.

What began before the recording did is known by its first use.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from gradviz.trace.events import AnyEvent, kind_name
from gradviz.trace.format.table import Table
from gradviz.trace.rules import RULES, LifeStage

_HAS: Final = {
    LifeStage.BEGINNING: "has begun before",
    LifeStage.USE: "was used before",
    LifeStage.END: "has ended before",
}

#: Kind of event -> the columns that name a thing, and the stage of its life.
_COLUMNS: Final = {
    kind_name(kind): rule.things for kind, rule in RULES.items() if rule.things
}


def doubtful_rows(tables: Mapping[str, Table]) -> Mapping[str, Table]:
    """Return the rows of events on devices that break a rule, and maybe more.

    A thing of which a begin is the first event, if there is one, and an end the last,
    breaks none: rows that name no other things are left out.
    """
    kept = {kind: np.zeros(tables[kind].num_rows, np.bool_) for kind in _COLUMNS}
    for thing in sorted({thing for things in _COLUMNS.values() for thing in things}):
        kinds = [kind for kind, things in _COLUMNS.items() if thing in things]
        wrong = _wrong([(tables[kind], _COLUMNS[kind][thing]) for kind in kinds], thing)
        for kind in kinds:
            kept[kind] |= np.isin(tables[kind].narrow(thing), wrong)
    return {kind: tables[kind].at(rows) for kind, rows in kept.items()}


def _wrong(stages: list[tuple[Table, LifeStage]], thing: str) -> npt.NDArray[np.int64]:
    """Return the ids of things that begin late, or go on after their end."""
    ids = np.concatenate([table[thing] for table, _ in stages])
    seqs = np.concatenate([table["seq"] for table, _ in stages])
    stage = np.repeat(
        [int(stage) for _, stage in stages], [table.num_rows for table, _ in stages]
    )
    order = np.lexsort((seqs, ids))
    ids, stage = ids[order], stage[order]
    follows = ids[1:] == ids[:-1]
    is_late = follows & (stage[1:] == LifeStage.BEGINNING)
    is_over = follows & (stage[:-1] == LifeStage.END)
    wrong: npt.NDArray[np.int64] = ids[1:][is_late | is_over]
    return wrong


class DeviceLifecycle:
    """State of everything on devices, advanced by one event after the other."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], LifeStage] = {}

    def check(self, event: AnyEvent) -> Iterator[str]:
        """Apply `event`, and yield its violations."""
        for thing, stage in RULES[type(event)].things.items():
            key = thing, getattr(event, thing)
            last = self._last.get(key)
            if last is not None and (
                stage is LifeStage.BEGINNING or last is LifeStage.END
            ):
                yield f"its {thing} {_HAS[last]}"
            self._last[key] = stage
