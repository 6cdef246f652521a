"""The engine, usable by itself: nodes over anything that can be added.

Read it bottom up. *The graph*: `protocols`, `node`, `basic_nodes`, `ownership`.
*Order*: `schedule`, `ready_queue`, `policies`. *State*: `graph_task`, `thread_state`,
`device_queues`, `passes`. *What is done*: `discovery`, `validation`, `hooks`,
`input_buffer`, `evaluation`, `completion`. *Who does it*: `worker`, `thread_pool`,
`device_threads`, `engine`. *Looking at it*: `prediction`, `inspection`, `watchdog`,
`anomaly`. `sync` is the seam through which all of it takes threads, locks and clocks.
"""

from gradviz.engine.basic_nodes import AccumulateGrad, GraphRoot
from gradviz.engine.engine import Engine, default_engine, set_default_engine
from gradviz.engine.node import Edge, InputMetadata, Node
from gradviz.engine.policies import Recorded, Step
from gradviz.engine.prediction import Position, predicted_order
from gradviz.engine.schedule import PyTorchSchedule

__all__ = [
    "AccumulateGrad",
    "Edge",
    "Engine",
    "GraphRoot",
    "InputMetadata",
    "Node",
    "Position",
    "PyTorchSchedule",
    "Recorded",
    "Step",
    "default_engine",
    "predicted_order",
    "set_default_engine",
]
