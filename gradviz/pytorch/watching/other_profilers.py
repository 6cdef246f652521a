"""Profilers of the program's own, for which ours makes way.

PyTorch has one profiler in a process, and does not tell whether one is prepared, as
`torch.profiler.profile` does some steps before it begins if it has a schedule. One that
begins then takes the other's memory away, and the process crashes. So the functions by
which a program's profiler is prepared, begun and ended are replaced by ones that also
note it: from the first recording on and for good, for it may be prepared during one
and begin after it.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

from gradviz.live_objects import instances_of
from gradviz.pytorch.compiler import Compiler

#: By these a profiler begins, and by this it ends, in `torch.autograd.profiler`.
_BEGINNINGS: Final = ("_prepare_profiler", "_enable_profiler")
_ENDING: Final = "_disable_profiler"


class OtherProfilers:
    """Profilers that the program itself prepares or runs.

    Attributes:
        make_way: Called before one is prepared or begins, on the thread that does it.

    Args:
        of_profilers: The module `torch.autograd.profiler`.
        compiler: Keeps Dynamo from compiling the functions put in place of PyTorch's.
    """

    def __init__(self, of_profilers: Any, compiler: Compiler) -> None:  # noqa: ANN401
        self.make_way: Callable[[], None] = _nothing
        self._of_profilers = of_profilers
        self._compiler = compiler
        self._is_one_there = _is_one_prepared(of_profilers.profile)
        for name in _BEGINNINGS:
            setattr(of_profilers, name, self._beginning(getattr(of_profilers, name)))
        setattr(of_profilers, _ENDING, self._ending(getattr(of_profilers, _ENDING)))

    @property
    def are_active(self) -> bool:
        """Return whether one is prepared or running, on whatever thread."""
        return self._is_one_there or bool(
            getattr(self._of_profilers, "_is_profiler_enabled", False)
        )

    def _beginning(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def begin(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - PyTorch's
            before, self._is_one_there = self._is_one_there, True
            try:
                self._compiler.call(self.make_way)
                return original(*args, **kwargs)
            except BaseException:
                self._is_one_there = before
                raise

        self._compiler.skips(begin)
        return begin

    def _ending(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def end(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - PyTorch's
            try:
                return original(*args, **kwargs)
            finally:
                self._is_one_there = False

        self._compiler.skips(end)
        return end


def _nothing() -> None:
    """Do nothing: nobody has to make way."""


def _is_one_prepared(kind: type[Any]) -> bool:
    """Return whether the program had prepared one before it was noted."""
    return any(one.entered and one.kineto_results is None for one in instances_of(kind))
