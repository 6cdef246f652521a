"""`torch.compile`, which must not notice that gradviz is there.

While a compiled function runs, Dynamo looks at every frame that its thread enters, and
compiles what it can of it. It leaves alone a function whose code is marked, but not
what that calls; so a marked function also takes Dynamo's callback away while it calls
others. Dynamo itself need not be imported for either.
"""

from collections.abc import Callable
from types import FunctionType
from typing import ParamSpec, TypeVar

from gradviz.pytorch.torch_names import PyTorch

P = ParamSpec("P")
R = TypeVar("R")


class Compiler:
    """Keeps functions of ours away from Dynamo.

    Args:
        names: Of PyTorch.
    """

    def __init__(self, names: PyTorch) -> None:
        self._set_callback = names.set_eval_frame
        self._skip = names.skip_code
        self.skips(type(self).call, names.is_compiling)

    def skips(self, *functions: Callable[..., object]) -> None:
        """Have Dynamo leave some functions alone, though not those that they call."""
        for function in functions:
            assert isinstance(function, FunctionType)
            self._skip(function.__code__)

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function so that Dynamo traces neither it nor its calls."""
        callback = self._set_callback(None)
        try:
            return function(*args, **kwargs)
        finally:
            self._set_callback(callback)
