"""The table of a page about gradients that came from other workers, or went to them."""

import numpy as np

from gradviz.analysis.crossings import Crossings
from gradviz.analysis.passes import passes
from gradviz.render.crossing_text import CrossingSentence, came, went
from gradviz.render.page.extract import Extract
from gradviz.render.page.tables import CrossingTable


def crossing_table(extract: Extract) -> CrossingTable:
    """What send and receive functions of the passes got, and what they sent."""
    if not extract.trace.columns["message_sent"].num_rows:
        return CrossingTable(*np.empty((6, 0), np.int64))
    found = Crossings(extract.trace, extract.node_ids)
    tasks = extract.tasks.tolist()
    begun = passes(extract.trace, limit=None, tasks=tasks)
    begin_ns = {one.task: one.begin_ns for one in begun}
    told: list[tuple[int, int, bool, CrossingSentence]] = []
    for task, node in extract.reached(found.nodes):
        crossing = found.of(task, node, begin_ns[task])
        if crossing is not None and (said := came(crossing) or went(crossing)):
            told.append((task, node, crossing.end == "receive", said))
    ends = extract.node_places.of(np.array([one.node for *_, one in told], np.int64))
    return CrossingTable(
        task=extract.task_places.of(np.array([task for task, *_ in told], np.int64)),
        node=extract.node_places.of(np.array([one[1] for one in told], np.int64)),
        has_left=np.array([has_left for *_, has_left, _ in told], np.int64),
        before=extract.places([one.before for *_, one in told]),
        other=ends,
        after=extract.places(
            [
                one.after if end >= 0 else f"{one.named}{one.after}"
                for end, (*_, one) in zip(ends, told, strict=True)
            ]
        ),
    )
