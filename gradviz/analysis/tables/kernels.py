"""Kernels that devices ran, and the nodes that had launched them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from gradviz.analysis.tables.executions import MAX_SHOWN, MAX_TEXT, Execution
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened

_LAUNCHED: Final = ("kernel", "name", "stream", "location", "thread", "t_ns")
_RAN: Final = ("kernel", "began_ns", "ended_ns")


class _Kernel(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Work that a stream was given.

    Attributes:
        kernel: Its id.
        name: Its name.
        stream: Such as ``sim:0/1``.
        location: ``path:line`` of the user's program that launched it, if known.
        thread: Thread that launched it.
        launched_ns: Time of its launch, on the trace's clock.
    """

    kernel: int
    name: str
    stream: str
    location: str
    thread: int
    launched_ns: int

    @property
    def device(self) -> str:
        """Device of its stream: ``sim:0``."""
        return self.stream.rpartition("/")[0]


class KernelRun(_Kernel, frozen=True, kw_only=True, gc=False):
    """Work that a stream has done.

    Attributes:
        start_ns: Time of its start on the device.
        end_ns: Time of its end.
    """

    start_ns: int
    end_ns: int


class Launch(_Kernel, frozen=True, kw_only=True, gc=False):
    """Work that a stream was given, whether or not it is known when it was done.

    Attributes:
        start_ns: Time of its start on the device; None if the trace does not say.
        end_ns: Time of its end; None if the trace does not say.
    """

    start_ns: int | None
    end_ns: int | None


def launches(trace: Trace) -> list[Launch]:
    """Every kernel that was launched, in the order in which they began.

    Those of which the trace does not say when they ran come last, in the order of
    their launches.
    """
    found = _launches(trace, None)
    return sorted(found, key=lambda one: (one.start_ns is None, one.start_ns or 0))


def kernels(trace: Trace, *, limit: int | None = MAX_SHOWN) -> list[KernelRun]:
    """Every kernel that was launched and ran, in the order in which they began.

    Of more than `limit` those that were launched first.
    """
    found = [
        KernelRun(**msgspec.structs.asdict(one))
        for one in _launches(trace, limit)
        if one.start_ns is not None
    ]
    found.sort(key=lambda one: one.start_ns)
    return found


def _launches(trace: Trace, limit: int | None) -> Iterator[Launch]:
    launched = trace.columns["kernel_launched"].at(slice(limit))
    ran = trace.columns["kernel_ran"]
    ran = ran.at(np.isin(ran.narrow("kernel"), launched.narrow("kernel")))
    times = {
        kernel: (began, max(began, ended))
        for kernel, began, ended in ran.at(slice(limit and 2 * limit)).rows(*_RAN)
    }
    for kernel, name, stream, location, thread, t_ns in launched.rows(*_LAUNCHED):
        began, ended = times.get(kernel, (None, None))
        yield Launch(
            kernel=kernel,
            name=shortened(trace.strings[name], MAX_TEXT),
            stream=shortened(trace.strings[stream], MAX_TEXT),
            location=shortened(trace.strings[location], MAX_TEXT),
            thread=thread,
            launched_ns=t_ns,
            start_ns=began,
            end_ns=ended,
        )


def launchers(
    launched: Sequence[KernelRun], runs: Sequence[Execution]
) -> Mapping[int, Execution]:
    """Of each kernel the innermost node in which its thread launched it.

    Args:
        launched: Kernels.
        runs: In order of start.

    Returns:
        Kernel's id -> node; nothing for what was launched outside of these.
    """
    by_thread: dict[int, list[Execution]] = defaultdict(list)
    for run in runs:
        by_thread[run.thread].append(run)
    found = {}
    inside: dict[int, list[Execution]] = defaultdict(list)
    reached: dict[int, int] = defaultdict(int)
    for one in sorted(launched, key=lambda one: one.launched_ns):
        mine, stack = by_thread[one.thread], inside[one.thread]
        at = reached[one.thread]
        while at < len(mine) and mine[at].start_ns <= one.launched_ns:
            stack.append(mine[at])
            at += 1
        reached[one.thread] = at
        while stack and _has_ended(stack[-1], one.launched_ns):
            stack.pop()
        if stack:
            found[one.kernel] = stack[-1]
    return found


def stream_order_key(stream: str) -> tuple[str, int, int]:
    """Return a key that sorts streams naturally: ``sim:2/0`` before ``sim:10/0``."""
    device, _, number = stream.rpartition("/")
    kind, _, index = device.partition(":")
    return kind, _number(index), _number(number)


def _has_ended(run: Execution, t_ns: int) -> bool:
    return run.end_ns is not None and run.end_ns < t_ns


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else -1
