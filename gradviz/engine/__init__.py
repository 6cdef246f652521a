"""The engine, usable by itself: nodes over anything that can be added.

Read bottom up: `protocols`, `node`, `basic_nodes` (the graph); `schedule`,
`ready_queue` (order); `graph_task`, `thread_state`, `device_queues` (state);
`discovery`, `validation`, `hooks`, `evaluation` (what is done); `completion`,
`worker`, `thread_pool`, `device_threads`, `engine` (who does it, and when).
"""

from gradviz.engine.basic_nodes import AccumulateGrad, GraphRoot
from gradviz.engine.engine import Engine, default_engine, set_default_engine
from gradviz.engine.node import Edge, InputMetadata, Node
from gradviz.engine.schedule import PyTorchSchedule

__all__ = [
    "AccumulateGrad",
    "Edge",
    "Engine",
    "GraphRoot",
    "InputMetadata",
    "Node",
    "PyTorchSchedule",
    "default_engine",
    "set_default_engine",
]
