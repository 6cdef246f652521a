"""Layers and losses as functions: ``gradviz.nn.functional``, PyTorch's names.

What they do is said where they are defined, in `gradviz.ops`.
"""

import sys
from typing import TYPE_CHECKING, Any

from gradviz.ops.recording.public import Home
from gradviz.ops.table import publish

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = publish(Home.FUNCTIONAL, sys.modules[__name__])  # noqa: PLE0605 - strings
