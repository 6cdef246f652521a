"""CUDA devices are watched where the program uses them, and only there."""

from types import SimpleNamespace
from typing import Any

from gradviz.pytorch.watching.devices import Devices


class Cuda:
    """The part of `torch.cuda` that is used, with one device of two in use."""

    def __init__(self, **changes: Any) -> None:
        self.is_begun, self.is_capturing, self.error = True, False, None
        self.waited: list[int] = []
        vars(self).update(changes)

    def is_initialized(self) -> bool:
        return self.is_begun

    def is_current_stream_capturing(self) -> bool:
        assert self.is_begun, "this would begin CUDA"
        return self.is_capturing

    def device_count(self) -> int:
        assert self.is_begun, "this would begin CUDA"
        return 2

    def memory_reserved(self, index: int) -> int:
        return 512 * index

    def synchronize(self, index: int) -> None:
        if self.error is not None:
            raise self.error
        self.waited.append(index)


def devices(cuda: Cuda, experimental: Any = dict) -> Devices:
    activity = SimpleNamespace(CUDA="cuda")
    torch = SimpleNamespace(
        cuda=cuda,
        autograd=SimpleNamespace(
            ProfilerActivity=activity, _supported_activities=lambda: {"cpu", "cuda"}
        ),
        _C=SimpleNamespace(_profiler=SimpleNamespace(_ExperimentalConfig=experimental)),
    )
    return Devices(torch, lambda settings: settings)


def test_nothing_begins_cuda_that_the_program_has_not_begun():
    assert not devices(Cuda(is_begun=False)).are_in_use()
    assert devices(Cuda()).are_in_use()


def test_nothing_is_watched_or_waited_for_while_a_graph_is_captured():
    cuda = Cuda(is_capturing=True)

    assert not devices(cuda).are_in_use()
    devices(cuda).wait()
    assert cuda.waited == []


def test_devices_are_watched_beside_the_processor():
    assert devices(Cuda()).activities({"cpu"}) == {"cpu", "cuda"}


def test_only_devices_that_hold_memory_are_waited_for():
    cuda = Cuda()
    devices(cuda).wait()

    assert cuda.waited == [1]


def test_an_error_of_a_device_is_left_to_the_program():
    devices(Cuda(error=RuntimeError("illegal memory access"))).wait()


def test_older_versions_are_asked_for_less():
    def of_2_7(
        *, profile_all_threads: bool = False, enable_cuda_sync_events: bool = False
    ) -> tuple[bool, bool]:
        return profile_all_threads, enable_cuda_sync_events

    def of_2_6(*, enable_cuda_sync_events: bool = False) -> bool:
        return enable_cuda_sync_events

    assert devices(Cuda(), of_2_7).config() == (True, True)
    assert devices(Cuda(), of_2_6).config()
