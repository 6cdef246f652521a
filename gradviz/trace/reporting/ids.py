"""Process-wide unique ids for nodes, passes, queues, steps and module calls.

Each is one call into C: of two threads that ask at once one is first.
"""

import itertools
from typing import Final

#: Ids of nodes of a graph. Code that makes many calls `next`: compiled, it is faster.
NODE_IDS: Final = itertools.count()
next_node_id: Final = NODE_IDS.__next__

#: Ids of backward passes.
_TASK_IDS: Final = itertools.count()
next_task_id: Final = _TASK_IDS.__next__

#: Ids of ready queues.
next_queue_id: Final = itertools.count().__next__

#: Ids of kernels put into a stream, and of events that mark how far one has come.
KERNEL_IDS: Final = itertools.count()
next_kernel_id: Final = KERNEL_IDS.__next__
EVENT_IDS: Final = itertools.count()
next_event_id: Final = EVENT_IDS.__next__

#: Ids of steps of optimizers.
next_step_id: Final = itertools.count().__next__

#: Ids of calls of modules.
next_call_id: Final = itertools.count().__next__

#: Ids of collective operations between ranks.
next_collective_id: Final = itertools.count().__next__


def num_passes() -> int:
    """Return the number of backward passes so far, also unrecorded ones.

    A counter tells its next number only where it is printed, or by giving it away.
    """
    return int(repr(_TASK_IDS).removeprefix("count(").removesuffix(")"))
