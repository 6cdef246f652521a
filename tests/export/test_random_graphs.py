"""All formats, of random graphs on one to four devices, against their events."""

import random
from inspect import signature

import pytest

import gradviz as gv
from gradviz import sim
from gradviz.capture.session import record
from tests.export import (
    test_chrome,
    test_jsonl,
    test_perfetto,
    test_speedscope,
    test_tables,
)

MODULES = (test_chrome, test_jsonl, test_perfetto, test_speedscope, test_tables)

#: What is asked of one trace, whichever it is.
CHECKS = [
    check
    for module in MODULES
    for name, check in vars(module).items()
    if name.startswith("test_") and [*signature(check).parameters] == ["trace"]
]


def backward(chance):
    """A pass over thirty random nodes, each on a random device."""
    devices = ["cpu", "sim:0", "sim:1", "sim:2", "sim:3"][: chance.randint(2, 5)]
    leaf = gv.tensor([1.0, 2.0], requires_grad=True)
    made = [leaf.to(device) for device in devices]
    for _ in range(30):
        device = chance.choice(devices)
        one, other = (chance.choice(made).to(device) for _ in range(2))
        made.append(chance.choice([one * other, one + other.sin(), one.cos() - other]))
    sum((one.to("cpu").tanh().sum() for one in made), gv.tensor(0.0)).backward()
    for index in range(4):
        sim.synchronize(index)


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(20))
def test_every_format_says_what_happened(seed):
    assert len(CHECKS) > 15
    count = sim.device_count()
    sim.set_device_count(4)
    with record() as recording:
        backward(random.Random(seed))
    sim.set_device_count(count)

    for check in CHECKS:
        check(recording.trace)
