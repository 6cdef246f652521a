"""Context managers as decorators: of functions, generators and coroutines."""

import functools
import inspect
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import Any

#: Makes a context manager for one use.
MakeMode = Callable[[], AbstractContextManager[Any]]


def decorated(make_mode: MakeMode, function: Callable[..., Any]) -> Any:  # noqa: ANN401 - of `function`'s type
    """Return `function` always running in a mode.

    The mode is left while a generator waits to be resumed. A coroutine keeps it while
    it awaits, because it runs in a context of its own.

    Source: torch/utils/_contextlib.py, context_decorator.
    """
    if inspect.isclass(function):
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. "
            "You should only decorate functions or methods. To preserve the current "
            "behavior of class decoration, you can directly decorate the `__init__` "
            "method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )
    if inspect.isgeneratorfunction(function):
        return _generator(make_mode, function)
    if inspect.iscoroutinefunction(function):
        return _coroutine(make_mode, function)

    @functools.wraps(function, updated=())
    def call(*args: object, **kwargs: object) -> object:
        with make_mode():
            return function(*args, **kwargs)

    return call


def _generator(make_mode: MakeMode, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Generator[object, object, object]:
        generator = function(*args, **kwargs)
        resume = functools.partial(generator.send, None)
        while True:
            try:
                with make_mode():
                    response = resume()
            except StopIteration as end:
                return end.value
            try:
                request = yield response
            except GeneratorExit:
                with make_mode():
                    generator.close()
                raise
            except BaseException as error:  # noqa: BLE001 - it belongs to the generator
                resume = functools.partial(generator.throw, error)
            else:
                resume = functools.partial(generator.send, request)

    return call


def _coroutine(make_mode: MakeMode, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*args: object, **kwargs: object) -> object:
        with make_mode():
            return await function(*args, **kwargs)

    return call
