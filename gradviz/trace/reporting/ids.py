"""Numbers that no two things of one kind have in a process, whichever engine has them.

Each is one call into C: of two threads that ask at once one is first.
"""

import itertools
from typing import Final

#: Of nodes of a graph. What makes many asks itself: `next` is faster when compiled.
NODE_IDS: Final = itertools.count()
next_node_id: Final = NODE_IDS.__next__

#: Of a backward pass.
_TASK_IDS: Final = itertools.count()
next_task_id: Final = _TASK_IDS.__next__

#: Of a ready queue.
next_queue_id: Final = itertools.count().__next__

#: Of work that was put into a stream, and of an event that marks how far one has come.
KERNEL_IDS: Final = itertools.count()
next_kernel_id: Final = KERNEL_IDS.__next__
EVENT_IDS: Final = itertools.count()
next_event_id: Final = EVENT_IDS.__next__

#: Of a step of an optimizer.
next_step_id: Final = itertools.count().__next__

#: Of a call of a module.
next_call_id: Final = itertools.count().__next__

#: Of a collective operation between ranks.
next_collective_id: Final = itertools.count().__next__


def num_passes() -> int:
    """Return the number of backward passes so far, also unrecorded ones.

    A counter tells its next number only where it is printed, or by giving it away.
    """
    return int(repr(_TASK_IDS).removeprefix("count(").removesuffix(")"))
