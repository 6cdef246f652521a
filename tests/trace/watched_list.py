"""A list by which tests come in between two steps of who uses it."""


class Watched(list):
    """A list that does something at each append, and after it was first copied."""

    def __init__(self, at_append=lambda: None, after_copy=lambda: None):
        super().__init__()
        self._at_append = at_append
        self._after_copy = [after_copy]

    def append(self, item):
        self._at_append()
        super().append(item)

    def __getitem__(self, place):
        taken = super().__getitem__(place)
        while self._after_copy:
            self._after_copy.pop()()
        return taken
