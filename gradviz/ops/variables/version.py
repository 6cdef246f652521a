"""The version counter: how often the memory of a variable was changed in place.

A variable, its views and what was detached from it share a count; each op in place adds
one to it. Who saved the variable compares.

A variable whose count nobody else needs yet has none, which counts as 0: most never
have one.
"""

from typing import Final


class Version:
    """The count that variables with the same memory share.

    Attributes:
        value: Number of changes to the memory.
        changes: The last changes, while somebody listens: the value after each, and the
            line that made it. Changed as a whole.

    Source: c10/core/TensorImpl.h, VariableVersion.
    """

    __slots__ = ("changes", "value")

    def __init__(self, value: int = 0) -> None:
        self.value = value
        self.changes: tuple[tuple[int, str], ...] = ()


#: Version of inference tensors in place of a count: no node may save them. It is never
#: 0, so a look whether a variable was changed covers it as well.
INFERENCE: Final = Version(-1)
