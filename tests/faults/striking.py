"""Striking a thread at its N-th bytecode inside gradviz.

What strikes is the real thing: a signal whose handler raises, or an asynchronous
exception. A trace function that raised by itself would strike where the interpreter
never looks for signals, such as between taking a lock and entering its block.

Note [A blow without bytecode]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A trace function written in Python that sends a signal is itself the first to notice
it. So when the count is up, the trace function puts a C function in its place. That
one sends the signal before the next bytecode, and hands its result to another one in
C, which ends tracing. Then only the code under test can notice. (While it traces, 3.11
notices before the first instruction of a function, for which it finds no handler.)
"""

import contextlib
import ctypes
import functools
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import gradviz
from gradviz.engine.graph.sync import Threads

_WATCHED: Final = (str(gradviz.__path__[0]), contextlib.__file__)

Blow = Callable[[FrameType, str, object], Any]

_c: Final = ctypes.PyDLL(None)  # its functions are called with the GIL held
_TRACE_ARGUMENTS: Final = (ctypes.py_object,) * 3

_do_nothing: Final = _c["getpid"]
_do_nothing.argtypes, _do_nothing.restype = _TRACE_ARGUMENTS, None


class _Null:
    """An argument that is NULL, whatever is given."""

    from_param = staticmethod({}.get)


#: Takes the result of what has struck.
_end_tracing: Final = _c["PyEval_SetTrace"]
_end_tracing.argtypes, _end_tracing.restype = (_Null, _Null), None


def interrupting() -> Blow:
    """Ctrl-C: a signal, which only the main thread notices."""
    send = _c["raise"]
    send.argtypes = (ctypes.c_int, *_TRACE_ARGUMENTS)
    send.restype = functools.partial(_end_tracing, None)
    return functools.partial(send, signal.SIGINT)


def asynchronous(error: type[BaseException]) -> Blow:
    """Return an exception as a debugger or a timeout library throws it."""
    throw = _c["PyThreadState_SetAsyncExc"]
    throw.argtypes = (ctypes.c_ulong, ctypes.py_object, *_TRACE_ARGUMENTS)
    throw.restype = functools.partial(_end_tracing, None)
    return functools.partial(throw, threading.get_ident(), error)


def throw_here(error: type[BaseException]) -> None:
    """Throw `error` into the calling thread, which it strikes before this returns."""
    throw = ctypes.pythonapi.PyThreadState_SetAsyncExc
    throw(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(error))


class StrikingThreads(Threads):
    """A system that throws a KeyError into a thread when it next uses a mailbox.

    That is in the engine's own code, and a task may just have been taken out.

    Attributes:
        victim: Which thread, None for nobody.
    """

    def __init__(self) -> None:
        self.victim: int | None = None

    def mailbox(self) -> Any:
        system = self

        class Mailbox(type(super().mailbox())):  # type: ignore[misc]
            def get(self, *arguments: Any, **settings: Any) -> Any:
                item = super().get(*arguments, **settings)
                system._strike()
                return item

            def empty(self) -> bool:
                system._strike()
                return bool(super().empty())

        return Mailbox()

    def _strike(self) -> None:
        if self.victim == threading.get_ident():
            self.victim = None
            throw_here(KeyError)


class Strike:
    """Strikes the thread that arms it, once.

    Args:
        nth: At which bytecode of gradviz, counted from `arm` and from 1.
        blow: Makes what strikes; called on the thread that is struck.
        besides: A file whose bytecodes are struck, too.

    Attributes:
        place: What was struck, as ``module.py:function:line``; empty if nothing was.
    """

    def __init__(
        self, nth: int, blow: Callable[[], Blow], *, besides: str | None = None
    ) -> None:
        self._left = nth
        self._watched = _WATCHED if besides is None else (*_WATCHED, besides)
        self._blow = blow
        self._outer = None
        self.place = ""

    def arm(self) -> None:
        """Begin to count, in the functions that run on this thread already too."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            self._enter(frame, "call", None)
            frame = frame.f_back
        # Before 3.12.3 bytecodes are only traced if a frame asks for it by now.
        sys._getframe().f_trace_opcodes = True
        sys.settrace(self._enter)

    def disarm(self) -> None:
        """Stop counting; the thread that armed it."""
        sys.settrace(None)
        _trace_frames(sys._getframe(1), None)

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(self._watched):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        frame.f_trace = self._count
        return self._count

    def _count(self, frame: FrameType, event: str, argument: object) -> Any:
        if event != "opcode":
            return None
        self._left -= 1
        if self._left:
            return None
        code = frame.f_code
        module = code.co_filename.rpartition("/")[2]
        self.place = f"{module}:{code.co_name}:{frame.f_lineno}"
        _trace_frames(frame, None)
        sys.settrace(_do_nothing)
        return self._blow()


def _trace_frames(frame: FrameType | None, function: Any) -> None:
    while frame is not None:
        frame.f_trace = function
        frame = frame.f_back
