"""Methods about where a tensor is: on which device, in which kind of host memory."""

from typing import Self

from gradviz.backends.arrays.pinning import is_pinned
from gradviz.backends.base import accelerator_of, current_accelerator
from gradviz.backends.device import CPU, Device
from gradviz.backends.device_type import DeviceLike, DeviceType
from gradviz.backends.stream import Stream
from gradviz.ops.shapes.copying import MemoryFormat, pinned_copy, preserve_format
from gradviz.tensors.methods.conversion import Conversion


class Placement(Conversion):
    """Copies to the host and to devices, and facts about the memory."""

    __slots__ = ()

    @property
    def is_cpu(self) -> bool:
        """True if the tensor is in host memory."""
        return self.device is CPU

    @property
    def is_cuda(self) -> bool:
        """True if the tensor is on a CUDA device."""
        return self.device.type == "cuda"

    def get_device(self) -> int:
        """The index of the device; -1 for the CPU."""
        return self.device.number

    def cpu(self, *, memory_format: MemoryFormat = preserve_format) -> Self:
        """The tensor in host memory; see `to`."""
        return self.to(CPU, memory_format=memory_format)

    def cuda(
        self,
        device: DeviceLike = None,
        non_blocking: bool = False,
        *,
        memory_format: MemoryFormat = preserve_format,
    ) -> Self:
        """The tensor on a CUDA device, the current one if none is given; see `to`.

        Raises:
            RuntimeError: There is no such device, or no CuPy.
            ValueError: The device is of another type.
        """
        place = DeviceType("cuda").parse(device)
        return self.to(place, non_blocking=non_blocking, memory_format=memory_format)

    def pin_memory(self, device: str | Device | None = None) -> Self:
        """The tensor in pinned memory, from which copies need not be waited for.

        A tensor that is pinned already is returned as it is.

        Args:
            device: Of the accelerator that is to copy it; None for the current one.

        Raises:
            RuntimeError: The tensor is not in host memory, or there is no accelerator.
        """
        if self.device is not CPU:
            raise RuntimeError(
                f"cannot pin a tensor on {self.device}: only dense CPU tensors can be "
                f"pinned"
            )
        if self.is_pinned():
            return self
        target = current_accelerator() if device is None else Device(device)
        copy: Self = pinned_copy(self, accelerator_of(target))
        return copy

    def is_pinned(self, device: str | Device | None = None) -> bool:
        """Return whether the elements are in memory that some device has pinned."""
        del device
        return is_pinned(self.array)

    def record_stream(self, stream: Stream) -> None:
        """Say that `stream` uses the tensor too, on which it was not made.

        Its memory, once free, is not used again before the work that the stream has at
        that time is done. Without it, wait for the stream on the one that the tensor
        was made on before you let it go.

        Raises:
            TypeError: That is no stream.
            RuntimeError: The stream is of another type of device than the tensor.
        """
        if not isinstance(stream, Stream):
            raise TypeError(
                f"record_stream(): argument 'stream' must be a Stream, not "
                f"{type(stream).__name__}"
            )
        if stream.device.type != self.device.type:
            raise RuntimeError(
                f"record_stream(): stream {stream} cannot use a tensor on "
                f"{self.device}: expected a stream of a {self.device.type!r} device"
            )
        accelerator_of(stream.device)  # raises if the device is gone
        accelerator_of(self.device).record_stream(self.array, stream)
