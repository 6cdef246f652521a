"""How much longer a device takes for a kernel than the host does: models of latency.

A latency is a function of a stream's text and a kernel's name that answers in
nanoseconds. Workers sleep so long before a kernel; stepped devices never sleep.
"""

import random
from collections.abc import Callable, Mapping
from typing import TypeAlias

Latency: TypeAlias = Callable[[str, str], int]


def fixed(nanoseconds: int) -> Latency:
    """So long for every kernel.

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
    """So long for kernels of these names, and `other` for the rest.

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


def _check(nanoseconds: int) -> None:
    if nanoseconds < 0:
        raise ValueError(f"got a latency of {nanoseconds} ns, expected 0 or more")
