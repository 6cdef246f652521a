"""Records as PyTorch's profiler makes them on a machine with a GPU.

They were written, not recorded: names of fields, of calls of CUDA and of
synchronizations, and which records share an id, are those of the public sources of
PyTorch (torch/csrc/autograd/init.cpp) and Kineto (libkineto/src/CuptiActivity.cpp).
`tests/parity/test_pytorch_on_cuda.py` compares with the profiler itself where there is
a GPU.
"""

import itertools
import json
from typing import Any

from gradviz.pytorch.nodes.seen_node import SeenNode


class DeviceType:
    """Prints as PyTorch's enum of this name does."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"


class KinetoEvent:
    """A record: each field is asked for by a call."""

    def __init__(self, name: str, begin: int, end: int, **fields: Any) -> None:
        known = {
            "device_type": DeviceType("CPU"),
            "device_index": 0,
            "device_resource_id": 0,
            "correlation_id": 0,
            "linked_correlation_id": 0,
            "scope": 0,
            "sequence_nr": -1,
            "fwd_thread_id": 0,
            "metadata_json": "",
            "is_user_annotation": False,
        }
        known |= {"name": name, "start_ns": begin, "end_ns": end} | fields
        for field, value in known.items():
            setattr(self, field, lambda value=value: value)


class GpuRun:
    """The records of one run of the profiler, on one thread unless another is named."""

    def __init__(self, thread: int, *, has_metadata: bool = True) -> None:
        self.events: list[KinetoEvent] = []
        self._thread = thread
        self._ids = itertools.count(1)
        self._has_metadata = has_metadata

    def function(self, node: SeenNode, begin: int, end: int) -> int:
        """A function of the backward; its id."""
        number = next(self._ids)
        self._add(
            node.raw_name,
            begin,
            end,
            device_resource_id=self._thread,
            correlation_id=number,
            scope=1,
            sequence_nr=node.seen_nr,
        )
        return number

    def call(self, name: str, begin: int, end: int, inside: int = 0) -> int:
        """A call of the CUDA runtime; its id."""
        number = next(self._ids)
        self._add(
            name,
            begin,
            end,
            device_resource_id=self._thread,
            correlation_id=number,
            linked_correlation_id=inside,
        )
        return number

    def work(
        self, name: str, begin: int, end: int, stream: int, call: int, **metadata: int
    ) -> None:
        """Work of stream `stream` of the first device, or a synchronization."""
        text = json.dumps(metadata)[1:-1] if metadata and self._has_metadata else ""
        self._add(
            name,
            begin,
            end,
            device_type=DeviceType("CUDA"),
            device_resource_id=stream,
            correlation_id=call,
            metadata_json=text,
        )

    def launch(
        self, name: str, at: int, took: tuple[int, int], stream: int, inside: int = 0
    ) -> None:
        """A kernel, and the call that launched it."""
        number = self.call("cudaLaunchKernel", at, at + 2, inside)
        self.work(name, *took, stream, number)

    def handover(self, at: int, producer: int, consumer: int) -> None:
        """One stream waits for another, as the engine and programs have it do."""
        record = self.call("cudaEventRecord", at, at + 1)
        wait = self.call("cudaStreamWaitEvent", at + 2, at + 3)
        self.work(
            "Stream Wait Event",
            *(at + 2, at + 3, consumer, wait),
            wait_on_stream=producer,
            wait_on_cuda_event_record_corr_id=record,
        )

    def _add(self, name: str, begin: int, end: int, **fields: Any) -> None:
        self.events.append(KinetoEvent(name, begin, end, **fields))
