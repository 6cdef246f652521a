"""PyTorch's paths to names that gradviz has elsewhere, and `data`.

In: the imports of programs written for PyTorch. Out: the same names, of gradviz. Read
`checkpoint` and `hooks`, which have no code, then `data`.
"""

from gradviz.utils import checkpoint, data, hooks

__all__ = ["checkpoint", "data", "hooks"]
