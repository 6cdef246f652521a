"""Which part of a model is running, for the nodes that are made meanwhile."""

from contextvars import ContextVar
from typing import Final

#: Such as ``encoder.0.linear``; empty outside a model. Set by whoever runs models.
MODULE_PATH: Final = ContextVar("gradviz.module_path", default="")
