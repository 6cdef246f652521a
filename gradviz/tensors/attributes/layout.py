"""Layouts of the elements of a tensor in memory, by PyTorch's names."""

import enum
from typing import Final


class Layout(enum.Enum):
    """The layout of a tensor: there is one."""

    STRIDED = "strided"

    def __repr__(self) -> str:
        return f"gradviz.{self.value}"

    __str__ = __repr__


strided: Final = Layout.STRIDED
