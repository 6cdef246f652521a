"""The engine, usable by itself: nodes over anything that can be added.

In: nodes, edges and initial gradients. Out: a finished backward pass, with each step
reported to a probe. Read it bottom up: `graph`, `tasks`, `threads`, then `prediction`,
and `engine`, which joins them all.
"""

from gradviz.engine.engine import Engine, default_engine, set_default_engine
from gradviz.engine.graph.basic_nodes import AccumulateGrad, GraphRoot
from gradviz.engine.graph.node import Edge, InputMetadata, Node
from gradviz.engine.prediction import Position, predicted_order
from gradviz.engine.tasks.policies import Recorded, Step
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
