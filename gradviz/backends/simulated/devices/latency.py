"""Models of latency: the time that a device takes for a kernel.

A latency is a function of a stream's text and a kernel (its name, a string, that knows
how much there is to do) which answers in nanoseconds. It is pure but for `randomly`:
nothing is measured. See Note [Modeled time] in
`gradviz.backends.simulated.devices.work`.
"""

import math
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import DTypeLike


class Kernel(str):
    """A kernel, as a latency sees it: its name, and how much it does.

    Attributes:
        bytes_read: Bytes of the arrays that it reads,
        bytes_written: and of those that it writes. What a copy does on the host's side
            is not counted.
        elements: Number of elements that it computes, or copies.
        flops: Operations on floats of products of matrices, convolutions and what
            solves equations, a multiplication and an addition being two; 0 for others,
            of which memory says more.
        dtype: Of the elements.
    """

    __slots__ = ("bytes_read", "bytes_written", "dtype", "elements", "flops")

    bytes_read: int
    bytes_written: int
    elements: int
    flops: int
    dtype: np.dtype[Any]

    def __new__(
        cls,
        name: str,
        bytes_read: int = 0,
        bytes_written: int = 0,
        elements: int = 0,
        flops: int = 0,
        dtype: DTypeLike = np.float32,
    ) -> Self:
        """A kernel of that name."""
        kernel = super().__new__(cls, name)
        kernel.bytes_read = bytes_read
        kernel.bytes_written = bytes_written
        kernel.elements = elements
        kernel.flops = flops
        kernel.dtype = np.dtype(dtype)
        return kernel


Latency: TypeAlias = Callable[[str, Kernel], int]


def fixed(nanoseconds: int) -> Latency:
    """Make every kernel take so long.

    Raises:
        ValueError: A kernel cannot take less than no time.
    """
    return by_kernel({}, nanoseconds)


def randomly(seed: int, up_to_ns: int) -> Latency:
    """Anything up to so long: each stream has a sequence of its own, from the seed.

    Raises:
        ValueError: A kernel cannot take less than no time.
    """
    _check(up_to_ns)
    # Each entry is used by the worker of that stream only.
    generators: dict[str, random.Random] = {}

    def latency(stream: str, kernel: str) -> int:
        del kernel
        generator = generators.get(stream)
        if generator is None:
            generator = generators[stream] = random.Random(f"{seed} {stream}")
        return generator.randint(0, up_to_ns)

    return latency


def by_kernel(nanoseconds: Mapping[str, int], other: int = 0) -> Latency:
    """Make kernels of these names take so long, and the rest `other`.

    Raises:
        ValueError: A kernel cannot take less than no time.
    """
    times = dict(nanoseconds)
    for one in (*times.values(), other):
        _check(one)

    def latency(stream: str, kernel: str) -> int:
        del stream
        return times.get(kernel, other)

    return latency


# --- by size ------------------------------------------------------------------------


class Hardware(NamedTuple):
    """Parameters of a kernel's time: a roofline.

    Attributes:
        launch_ns: Time before any kernel starts.
        copy_ns: Time before a copy from or to the host, or another device, starts.
        memory: Bytes per nanosecond, from and to the device's memory.
        host_link: The same to and from pinned memory of the host.
        peer_link: The same to another device, one way.
        flops: Operations per nanosecond, by dtype.
    """

    launch_ns: int
    copy_ns: int
    memory: float
    host_link: float
    peer_link: float
    flops: Mapping[np.dtype[Any], float]


def of_hardware(hardware: Hardware) -> Latency:
    """Return the latency of hardware: an offset, and the longer of two times.

    One is the time that memory, or a link, needs for the bytes, the other the time that
    the units need for the operations.
    """

    def latency(stream: str, kernel: Kernel) -> int:
        del stream
        moved = kernel.bytes_read + kernel.bytes_written
        if kernel in _BY_HOST_LINK:
            return hardware.copy_ns + math.ceil(moved / hardware.host_link)
        if kernel == _BY_PEER_LINK:
            time = kernel.bytes_read / hardware.peer_link
            return hardware.copy_ns + math.ceil(time)
        rate = hardware.flops.get(kernel.dtype, hardware.flops[_SINGLE])
        time = max(moved / hardware.memory, kernel.flops / rate)
        return hardware.launch_ns + math.ceil(time)

    return latency


_HALF, _SINGLE, _DOUBLE = map(np.dtype, (np.float16, np.float32, np.float64))

_BY_HOST_LINK: Final = ("Memcpy HtoD", "Memcpy DtoH")
_BY_PEER_LINK: Final = "Memcpy PtoP"

_PRESETS: Final[dict[str, Hardware]] = {
    # The figures of the SXM module's data sheet, times the share that programs get:
    # 3.35 TB/s of memory; PCIe 5.0 with 16 lanes, 64 GB/s; NVLink, 450 GB/s one way;
    # 67 TFLOPS in float32 and in float64 (by tensor cores), 989 in half precision.
    "h100-like": Hardware(
        launch_ns=2_000,
        copy_ns=6_000,
        memory=2_700.0,
        host_link=52.0,
        peer_link=360.0,
        flops={_HALF: 700_000.0, _SINGLE: 50_000.0, _DOUBLE: 50_000.0},
    ),
}


def preset(name: str) -> Latency:
    """Return a model of a device, by the bytes and operations of its kernels.

    It is a model, and no measurement: it knows bytes, operations and what comes before
    each kernel. It knows no caches, no shapes that fit badly, no fusion of kernels and
    no competition: kernels of two streams take as long together as each alone. What it
    is for are proportions: of copies to kernels, of large kernels to small ones.

    Args:
        name: ``"h100-like"``.

    Raises:
        ValueError: There is no such preset.
    """
    hardware = _PRESETS.get(name)
    if hardware is None:
        raise ValueError(f"no preset {name!r}: there is {', '.join(_PRESETS)}")
    return of_hardware(hardware)


# --- how much a kernel does ---------------------------------------------------------

#: They read, or write, as much of their first array as others say.
_HERE_AND_THERE: Final = frozenset(
    {"take", "index", "take_along_axis", "index_put", "put_along_axis", "add.at"}
)


def kernel_of(
    name: str, reads: Iterable[np.ndarray], writes: Iterable[np.ndarray]
) -> Kernel:
    """Describe a kernel that is about to be launched.

    Args:
        name: Its name in traces.
        reads: The arrays that it reads, in the order of its arguments,
        writes: and those that it writes.
    """
    read, written = list(reads), list(writes)
    sizes_read, sizes_written = list(map(_bytes, read)), list(map(_bytes, written))
    if name in _HERE_AND_THERE and len(read) + len(written) > 1:
        both = sizes_read + sizes_written
        least = sum(both) - max(both)  # but the table
        sizes_read = [min(size, least) for size in sizes_read]
        sizes_written = [min(size, least) for size in sizes_written]
    largest = max(written or read, key=lambda one: one.size, default=None)
    return Kernel(
        name,
        sum(sizes_read),
        sum(sizes_written),
        0 if largest is None else largest.size,
        _flops(name, read, written),
        np.float32 if largest is None else largest.dtype,
    )


def _bytes(array: np.ndarray) -> int:
    """Those that are there: none twice that are only shown twice."""
    size = array.itemsize
    for length, step in zip(array.shape, array.strides, strict=True):
        size *= length if step or not length else 1
    return size


def _flops(name: str, read: list[np.ndarray], written: list[np.ndarray]) -> int:
    counted = _COUNTED.get(name)
    if counted is None or not read:
        return 0
    return counted(read, written[0] if written else read[-1])


def _of_product(arrays: list[np.ndarray], result: np.ndarray) -> int:
    return 2 * result.size * arrays[0].shape[-1]


def _of_contraction(arrays: list[np.ndarray], result: np.ndarray) -> int:
    """Each index of a product of two is in two of three arrays."""
    return 2 * math.isqrt(math.prod(one.size for one in arrays) * result.size)


def _of_solution(arrays: list[np.ndarray], result: np.ndarray) -> int:
    del result
    return 2 * arrays[0].size * arrays[0].shape[-1]


def _of_outputs(arrays: list[np.ndarray], result: np.ndarray) -> int:
    weight = arrays[1]
    return 2 * result.size * (weight.size // max(weight.shape[0], 1))


def _of_inputs(arrays: list[np.ndarray], result: np.ndarray) -> int:
    del result
    weight, y = arrays
    return 2 * y.size * (weight.size // max(weight.shape[0], 1))


def _of_weights(arrays: list[np.ndarray], result: np.ndarray) -> int:
    y = arrays[1]
    return 2 * y.size * (result.size // max(result.shape[0], 1))


#: Numbers of operations on floats that kernels do, by name.
_COUNTED: Final[dict[str, Callable[[list[Any], Any], int]]] = {
    "matmul": _of_product,
    **dict.fromkeys(("dot", "einsum", "inner", "tensordot", "vdot"), _of_contraction),
    **dict.fromkeys(("cholesky", "det", "eig", "eigh", "inv", "qr"), _of_solution),
    **dict.fromkeys(("slogdet", "solve", "svd", "solve_triangular"), _of_solution),
    "convolution": _of_outputs,
    "convolution_backward_input": _of_inputs,
    "convolution_backward_weight": _of_weights,
}


def _check(nanoseconds: int) -> None:
    if nanoseconds < 0:
        raise ValueError(f"got a latency of {nanoseconds} ns, expected 0 or more")
