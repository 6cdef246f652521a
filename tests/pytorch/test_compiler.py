"""Calls to Dynamo, for each version of PyTorch."""

import enum
from collections.abc import Callable
from types import CodeType, SimpleNamespace
from typing import Any

import pytest

from gradviz.pytorch.compiler import Compiler
from gradviz.pytorch.torch_names import skip_code_of


class Dynamo:
    """A Dynamo that compiles each function that it is shown, unless told otherwise."""

    def __init__(self) -> None:
        self.callback: Any = "compile"
        self._skipped: set[CodeType] = set()

    def set_eval_frame(self, callback: Any) -> Any:
        before, self.callback = self.callback, callback
        return before

    def compiles(self, function: Callable[..., Any]) -> bool:
        """Return whether it would compile this function now."""
        return self.callback is not None and function.__code__ not in self._skipped


class DynamoBefore27(Dynamo):
    """The interface up to PyTorch 2.6."""

    def skip_code(self, code: CodeType) -> None:
        self._skipped.add(code)


class DynamoSince27(Dynamo):
    """The interface from PyTorch 2.7 on."""

    _FrameAction = enum.Enum("_FrameAction", ("DEFAULT", "SKIP", "RUN_ONLY"))

    class _FrameExecStrategy:
        def __init__(self, cur_action: enum.Enum, recursive_action: enum.Enum) -> None:
            self.cur_action = cur_action
            self.recursive_action = recursive_action

    def set_code_exec_strategy(
        self, code: CodeType, strategy: _FrameExecStrategy
    ) -> None:
        assert strategy.recursive_action is self._FrameAction.DEFAULT
        if strategy.cur_action is self._FrameAction.SKIP:
            self._skipped.add(code)


@pytest.fixture(params=[DynamoBefore27, DynamoSince27])
def dynamo(request):
    return request.param()


@pytest.fixture
def compiler(dynamo):
    return Compiler(
        SimpleNamespace(
            set_eval_frame=dynamo.set_eval_frame,
            skip_code=skip_code_of(dynamo),
            is_compiling=lambda: False,
        )
    )


def ours() -> None:
    """A function of gradviz."""


def theirs() -> None:
    """A function of the program."""


def test_a_function_is_left_alone_and_no_other(dynamo, compiler):
    compiler.skips(ours)

    assert not dynamo.compiles(ours)
    assert dynamo.compiles(theirs)


def test_nothing_is_compiled_in_a_call_and_all_that_was_is_afterwards(dynamo, compiler):
    assert not compiler.call(dynamo.compiles, theirs)
    assert dynamo.compiles(theirs)
    with pytest.raises(ZeroDivisionError):
        compiler.call(lambda: 1 / 0)
    assert dynamo.compiles(theirs)


def test_a_call_is_not_compiled_itself(dynamo, compiler):
    assert not dynamo.compiles(Compiler.call)


def test_the_fakes_have_the_interface_of_pytorch():
    eval_frame = pytest.importorskip("torch")._C._dynamo.eval_frame
    is_old = hasattr(eval_frame, "skip_code")
    fake = DynamoBefore27() if is_old else DynamoSince27()

    skip_code_of(eval_frame)(ours.__code__)
    for name in ("set_code_exec_strategy", "_FrameAction", "_FrameExecStrategy"):
        assert hasattr(fake, name) == hasattr(eval_frame, name) == (not is_old)
