"""CUDA devices: ``gradviz.cuda``, for programs that ask whether there are any."""

from gradviz.backends.base import backends


def is_available() -> bool:
    """Whether there is a CUDA device that gradviz can use."""
    return device_count() > 0


def device_count() -> int:
    """How many CUDA devices gradviz can use."""
    return sum(one.device_count() for one in backends() if one.type == "cuda")
