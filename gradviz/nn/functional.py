"""Layers and losses as functions: ``gradviz.nn.functional``, PyTorch's names.

What they do is said where they are defined, in `gradviz.ops`.
"""

import sys

from gradviz.ops.dispatch.public import Home
from gradviz.ops.table import publish

__all__ = publish(Home.FUNCTIONAL, sys.modules[__name__])  # noqa: PLE0605 - strings
