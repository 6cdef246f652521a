"""Special functions: ``gradviz.special``, PyTorch's names.

The functions are documented where they are defined, in `gradviz.ops`.
"""

import sys

from gradviz.ops.dispatch.public import Home
from gradviz.ops.table import publish

__all__ = publish(Home.SPECIAL, sys.modules[__name__])  # noqa: PLE0605 - strings
