"""Numbers that no two things of one kind have in a process, whichever engine has them.

Each is one call into C: of two threads that ask at once one is first.
"""

import itertools
from typing import Final

#: Of nodes of a graph. What makes many asks itself: `next` is faster when compiled.
NODE_IDS: Final = itertools.count()
next_node_id: Final = NODE_IDS.__next__

#: Of a backward pass.
next_task_id: Final = itertools.count().__next__

#: Of a ready queue.
next_queue_id: Final = itertools.count().__next__

#: Of a step of an optimizer.
next_step_id: Final = itertools.count().__next__

#: Of a call of a module.
next_call_id: Final = itertools.count().__next__
