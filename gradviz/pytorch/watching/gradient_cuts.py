"""Functions of PyTorch's that end gradients: detach, .data, integers, no_grad.

They make no node, so only who hears of each call of a function can tell their lines.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from gradviz.pytorch.torch_names import PyTorch
from gradviz.trace import probe
from gradviz.trace.reporting.location import Locations

#: Functions whose results are numbers, or arrays of NumPy's.
_TO_THE_HOST: Final = frozenset({"item", "tolist", "numpy", "__array__", "__float__"})

#: Maximum number of different cuts of a forward told, and of arguments examined.
_MAX_CUTS: Final = 32
_MAX_TENSORS: Final = 32


class GradientCuts(threading.local):
    """The functions that have ended gradients in the forward of the calling thread.

    Args:
        names: Of PyTorch.
        is_busy: Tells if the thread is in a step of an optimizer.
    """

    def __init__(self, names: PyTorch, is_busy: Callable[[], bool]) -> None:
        self._names, self._is_busy = names, is_busy
        self._locations: Locations[str] = Locations(lambda text: text)
        self._told: set[tuple[str, str]] = set()

    def forget(self) -> None:
        """Begin with another forward."""
        self._told.clear()

    def look_at(self, name: str, args: Iterable[Any], result: object) -> None:
        """Report a function that was given gradients and hands none on.

        Args:
            name: Of the function.
            args: Its arguments.
            result: Value that it has returned.
        """
        listener = probe.current
        if listener is None or len(self._told) >= _MAX_CUTS or self._is_busy():
            return
        made = list(self._tensors((result,)))
        if not (made or name in _TO_THE_HOST):
            return
        torch = self._names.torch
        with self._names.no_torch_functions():
            if any(one.requires_grad for one in made):
                return
            if not any(one.requires_grad for one in self._tensors(args)):
                return
            operation = name if torch.is_grad_enabled() else f"{name} under no_grad"
        found = operation, self._locations.of_caller()
        if found not in self._told:
            self._told.add(found)
            listener.gradient_cut(*found)

    def _tensors(self, values: Iterable[Any]) -> Iterator[Any]:
        """Yield the first tensors among values, and in lists and tuples of them."""
        num, kind = 0, self._names.torch.Tensor
        for value in values:
            for one in value if type(value) in {list, tuple} else (value,):
                if isinstance(one, kind) and num < _MAX_TENSORS:
                    num += 1
                    yield one
