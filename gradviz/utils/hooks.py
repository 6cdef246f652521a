"""``torch.utils.hooks``; see `gradviz.engine.graph.removable_handle`."""

from gradviz.engine.graph.removable_handle import RemovableHandle

__all__ = ["RemovableHandle"]
