"""Special functions: ``gradviz.special``, PyTorch's names.

What they do is said where they are defined, in `gradviz.ops`.
"""

import sys
from typing import TYPE_CHECKING, Any

from gradviz.ops.recording.public import Home
from gradviz.ops.table import publish

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # noqa: ANN401 - an op of the table


__all__ = publish(Home.SPECIAL, sys.modules[__name__])  # noqa: PLE0605 - strings
