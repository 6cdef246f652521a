"""PyTorch's paths to what gradviz has elsewhere, and `data`."""

from gradviz.utils import checkpoint, data, hooks

__all__ = ["checkpoint", "data", "hooks"]
