"""The fake of CuPy against the real one, where that is installed: no GPU is needed."""

import inspect

import numpy as np
import pytest

from tests.backends import fake_cupy

cupy = pytest.importorskip("cupy")

#: What `gradviz.backends.cuda.backend` calls that the fake has as functions or classes.
CALLED = (
    "ElementwiseKernel",
    "ascontiguousarray",
    "empty",
    "get_default_memory_pool",
    "get_default_pinned_memory_pool",
    "zeros",
    "cuda.Device",
    "cuda.Event",
    "cuda.Stream",
    "cuda.alloc_pinned_memory",
    "cuda.get_elapsed_time",
    "cuda.runtime.CUDARuntimeError",
    "cuda.runtime.getDevice",
    "cuda.runtime.getDeviceCount",
    "cuda.runtime.getDeviceProperties",
    "cuda.runtime.setDevice",
)

METHODS = {
    cupy.cuda.Device: ("__enter__", "__exit__", "synchronize"),
    cupy.cuda.Event: ("done", "record", "synchronize"),
    cupy.cuda.Stream: ("done", "null", "synchronize", "use", "wait_event"),
    cupy.cuda.MemoryPool: ("free_all_blocks", "total_bytes"),
    cupy.cuda.MemoryPointer: ("copy_from_device_async", "mem", "memset_async", "ptr"),
    cupy.cuda.PinnedMemoryPool: ("free_all_blocks",),
    cupy.cuda.memory.BaseMemory: ("ptr", "size"),
    cupy.ndarray: (
        *("T", "astype", "copy", "data", "dtype", "flags", "get", "itemsize"),
        *("nbytes", "ndim", "real", "reshape", "set", "shape", "size", "strides"),
        *("sum", "view", "__array_function__", "__array_ufunc__"),
        "__cuda_array_interface__",
    ),
}


@pytest.mark.parametrize("name", CALLED)
def test_cupy_has_what_is_called(name):
    found, fake = cupy, fake_cupy.make()
    for part in name.split("."):
        found, fake = getattr(found, part), getattr(fake, part)

    assert callable(found)
    assert callable(fake)


@pytest.mark.parametrize("cls", METHODS, ids=lambda cls: cls.__name__)
def test_cupys_classes_have_what_is_asked_of_them(cls):
    assert [name for name in METHODS[cls] if not hasattr(cls, name)] == []


def test_streams_and_events_are_made_with_the_same_arguments():
    fake = fake_cupy.make()

    for name in ("Stream", "Event"):
        real = inspect.signature(getattr(cupy.cuda, name)).parameters
        assert set(inspect.signature(getattr(fake.cuda, name)).parameters) <= set(real)


def test_the_fake_lacks_what_cupy_lacks():
    assert [name for name in fake_cupy.LACKS if hasattr(cupy, name)] == []
    lacks = fake_cupy.LACKS_IN_LINALG
    assert [name for name in lacks if hasattr(cupy.linalg, name)] == []
    for name, arguments in fake_cupy.TAKES_NOT.items():
        taken = inspect.signature(getattr(cupy, name)).parameters
        assert arguments.isdisjoint(taken)
        assert arguments <= set(inspect.signature(getattr(np, name)).parameters)


def test_errors_are_of_the_classes_that_are_expected():
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
    assert issubclass(cupy.cuda.runtime.CUDARuntimeError, RuntimeError)


def test_failures_of_algorithms_are_ignored_unless_asked_for():
    import cupyx

    assert cupyx.geterr()["linalg"] == "ignore"
    with cupyx.errstate(linalg="raise"):
        assert cupyx.geterr()["linalg"] == "raise"


@pytest.mark.parametrize("kernel", fake_cupy.KERNELS, ids=lambda kernel: kernel[-1])
def test_kernels_have_the_parameters_that_are_passed(kernel):
    real = cupy.ElementwiseKernel(*kernel)

    assert [one.name for one in real.in_params] == ["index", "size", "number"]
    assert [(one.name, one.raw) for one in real.out_params] == [("found", True)]
