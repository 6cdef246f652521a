"""``torch.utils.hooks``; see `gradviz.engine.removable_handle`."""

from gradviz.engine.removable_handle import RemovableHandle

__all__ = ["RemovableHandle"]
