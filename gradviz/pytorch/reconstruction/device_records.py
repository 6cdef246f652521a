"""Records of CUDA devices' work, from PyTorch's profiler.

Note [What the profiler tells of devices]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Its records are of three kinds besides functions of a backward:

* *calls* of the CUDA runtime or driver, on a thread of the host: ``cudaLaunchKernel``;
* *work* that a stream did: kernels, copies, fills. It has the correlation id of the
  call that launched it;
* *synchronizations*, if the profiler is asked for them: a stream that waits for an
  event, and the host that waits for an event, a stream or a device. They have the
  correlation id of their call, and say which stream; the host's waits for a device have
  none. The event is told by the correlation id of the call that recorded it, where the
  version of PyTorch hands on metadata.

The profiler of AMD's devices calls them the same, with ``hip`` for ``cuda``.
Source: libkineto/src/CuptiActivity.cpp; torch/csrc/profiler/collection.cpp.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

#: Calls of a runtime or driver, such as ``cudaLaunchKernel``, ``cuMemcpyAsync``.
_CALL: Final = re.compile(r"(?:cuda|hip|cu)[A-Z]\w*")

#: The scope of what is not a function or range of PyTorch's. Operators have the same,
#: and are not watched.
_NO_SCOPE: Final = 0

#: Synchronizations, as their records are called.
_SYNCHRONIZATIONS: Final = frozenset(
    {"Stream Wait Event", "Event Sync", "Stream Sync", "Context Sync"}
)

#: Records that are shown beside work, and are none.
_NO_WORK: Final = ("gpu_user_annotation",)


class HostCall(NamedTuple):
    """A call of the CUDA runtime; times are the profiler's.

    Attributes:
        begin_ns: Time of its start.
        end_ns: Time of its return.
        name: Of the function.
        thread: The operating system's number of the thread, as far as it is known.
        correlation: Its id, which what it launched has too.
        function: The id of the watched function that made it, 0 for none.
    """

    begin_ns: int
    end_ns: int
    name: str
    thread: int
    correlation: int
    function: int


class DeviceWork(NamedTuple):
    """Work of a stream, or a synchronization; times are the profiler's.

    Attributes:
        begin_ns: Time of its start on the device.
        end_ns: Time of its end.
        name: Of the kernel, such as ``Memcpy DtoH (Device -> Pageable)``.
        device: Its index.
        stream: CUDA's number of the stream, -1 for none.
        correlation: The id of the call that launched it.
        recorded: The id of the call that recorded the event which is waited for, -1 if
            that is not known.
        recorded_on: The stream of that event, -1 if that is not known.
    """

    begin_ns: int
    end_ns: int
    name: str
    device: int
    stream: int
    correlation: int
    recorded: int = -1
    recorded_on: int = -1

    @property
    def stream_name(self) -> str:
        """Name, such as ``cuda:0/7``."""
        return f"cuda:{self.device}/{self.stream}"


class DeviceRecords(NamedTuple):
    """Records of devices between a start and a stop of the profiler.

    Attributes:
        calls: In the order in which they began.
        work: Kernels, copies and fills, in the order in which they began.
        synchronizations: By the id of their call.
        functions: Of watched functions, by their id: the thread, the start, the end.
    """

    calls: list[HostCall]
    work: list[DeviceWork]
    synchronizations: dict[int, DeviceWork]
    functions: dict[int, tuple[int, int, int]]


def split_records(events: Iterable[Any]) -> tuple[list[Any], DeviceRecords]:
    """Separate functions of backwards from records of devices.

    Args:
        events: The records of the profiler.

    Returns:
        The functions, and the rest.
    """
    functions: list[Any] = []
    found = DeviceRecords([], [], {}, {})
    for one in events:
        name = one.name()
        if one.scope() != _NO_SCOPE:
            functions.append(one)
            place = one.device_resource_id(), one.start_ns(), one.end_ns()
            found.functions[one.correlation_id()] = place
        elif str(one.device_type()).rpartition(".")[2] not in ("CUDA", "HIP"):
            if _CALL.fullmatch(name):  # else it is what profiling itself took
                found.calls.append(_call(one, name))
        elif name in _SYNCHRONIZATIONS:
            found.synchronizations[one.correlation_id()] = _work(one, name)
        elif name not in _NO_WORK and not _is_annotation(one):
            found.work.append(_work(one, name))
    found.calls.sort()
    found.work.sort()
    return functions, found


def _is_annotation(one: Any) -> bool:  # noqa: ANN401 - PyTorch's
    """Tell if a record is a range that the program has named, as a device saw it."""
    ask = getattr(one, "is_user_annotation", None)
    return ask is not None and bool(ask())


def _call(one: Any, name: str) -> HostCall:  # noqa: ANN401 - PyTorch's
    return HostCall(
        one.start_ns(),
        one.end_ns(),
        name,
        one.device_resource_id(),
        one.correlation_id(),
        one.linked_correlation_id(),
    )


def _work(one: Any, name: str) -> DeviceWork:  # noqa: ANN401 - PyTorch's
    recorded = recorded_on = -1
    if name in _SYNCHRONIZATIONS:
        metadata = _metadata(one)
        recorded = _number(metadata, "wait_on_cuda_event_record_corr_id")
        recorded_on = _number(metadata, "wait_on_stream")
    return DeviceWork(
        one.start_ns(),
        one.end_ns(),
        name,
        one.device_index(),
        one.device_resource_id(),
        one.correlation_id(),
        recorded,
        recorded_on,
    )


def _metadata(one: Any) -> dict[str, Any]:  # noqa: ANN401 - PyTorch's
    """Further fields of a record; empty where this version of PyTorch has none.

    It is the inside of a JSON object.
    """
    ask = getattr(one, "metadata_json", None)
    text = "" if ask is None else str(ask()).strip().rstrip(",")
    try:
        found = json.loads(text if text.startswith("{") else f"{{{text}}}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(metadata: dict[str, Any], name: str) -> int:
    value = metadata.get(name)
    try:
        return -1 if value is None else int(value)
    except (TypeError, ValueError):
        return -1
