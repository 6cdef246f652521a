"""The engine, usable by itself: nodes over anything that can be added.

Read it bottom up: each module needs only those before it. *The ground*: `sync`, the
seam through which all of it takes threads, locks and clocks; `protocols`, `grad_mode`.
*The graph*: `removable_handle`, `anomaly`, `node`, `input_buffer`, `basic_nodes`,
`validation`. *Streams*: `stream_rules`, `stream_mismatch`, `pass_streams`. *Order and
state*, over `gradviz.ready_order`: `ready_queue`, `graph_task`, `device_queues`,
`worker`, `passes`, `policies`. *What is done*: `discovery`, `hooks`, `handover`,
`evaluation`, `completion`. *Who does it*: `thread_main`, `thread_pool`,
`device_threads`, `execution`. *Looking at it*: `prediction`, `inspection`, `watchdog`,
`tracebacks`. *All of it*: `engine`.
"""

from gradviz.engine.basic_nodes import AccumulateGrad, GraphRoot
from gradviz.engine.engine import Engine, default_engine, set_default_engine
from gradviz.engine.node import Edge, InputMetadata, Node
from gradviz.engine.policies import Recorded, Step
from gradviz.engine.prediction import Position, predicted_order
from gradviz.ready_order import PyTorchSchedule

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
