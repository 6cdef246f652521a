"""CUDA devices that a program uses, asked without using them.

To ask whether there is a GPU makes a process use it: `torch.cuda.is_available` may
begin CUDA, after which a fork cannot use it. So nothing is asked before the program
has begun CUDA itself, and nothing is while a CUDA graph is captured, which any call of
the runtime may spoil.
"""

import contextlib
from collections.abc import Callable
from typing import Any, Final

#: Settings of the profiler, in the order in which PyTorch got them: synchronizations,
#: all threads, and what the records of synchronizations say of their events.
_SETTINGS: Final = (
    "enable_cuda_sync_events",
    "profile_all_threads",
    "expose_kineto_event_metadata",
)


class Devices:
    """The CUDA devices of a process. One thread at a time.

    Args:
        torch: The module.
        new_config: Makes the profiler's configuration from its settings.
    """

    def __init__(self, torch: Any, new_config: Callable[[Any], Any]) -> None:  # noqa: ANN401
        self._torch = torch
        self._new_config = new_config
        self._activity = getattr(torch.autograd.ProfilerActivity, "CUDA", None)

    def are_in_use(self) -> bool:
        """Return whether the profiler should watch devices now."""
        torch = self._torch
        try:
            return (
                torch.cuda.is_initialized()
                and self._activity in torch.autograd._supported_activities()
                and not torch.cuda.is_current_stream_capturing()
            )
        except (AttributeError, RuntimeError):  # another build, or a device that failed
            return False

    def config(self) -> Any:  # noqa: ANN401 - PyTorch's
        """Return a configuration with which synchronizations are seen too."""
        experimental = self._torch._C._profiler._ExperimentalConfig
        wanted = dict.fromkeys(_SETTINGS, True)
        while True:
            try:
                return self._new_config(experimental(**wanted))
            except TypeError:  # an older one, which lacks what came last
                wanted.popitem()

    def activities(self, others: set[Any]) -> set[Any]:
        """Return the activities for the profiler to watch: devices and `others`."""
        return {*others, self._activity}

    def wait(self) -> None:
        """Wait until the devices have done their work.

        The profiler does not tell of work that is not done when it stops. An error of
        the device is left to the program, which gets it at its next call.
        """
        cuda = self._torch.cuda
        with contextlib.suppress(Exception):
            if cuda.is_current_stream_capturing():
                return
            for index in range(cuda.device_count()):
                if cuda.memory_reserved(index):  # others have no context
                    cuda.synchronize(index)
