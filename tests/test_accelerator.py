import pytest

import gradviz as gv


def test_there_is_always_an_accelerator():
    place = gv.accelerator.current_accelerator()

    assert gv.accelerator.is_available()
    assert gv.accelerator.device_count() >= 1
    assert place.type in ("cuda", "sim")
    assert gv.zeros(2, device=place).sum().item() == 0


def test_its_functions_are_those_of_the_current_accelerator():
    assert gv.accelerator.current_device_index() == 0
    assert gv.accelerator.current_stream() == gv.current_stream()
    with gv.accelerator.device_index(0):
        gv.accelerator.synchronize()
    side = gv.Stream()
    gv.accelerator.set_stream(side)
    try:
        assert gv.accelerator.current_stream() == side
    finally:
        gv.accelerator.set_stream(gv.default_stream())
    gv.accelerator.set_device_index(0)
    gv.accelerator.empty_cache()
    gv.accelerator.reset_peak_memory_stats()
    assert gv.accelerator.max_memory_allocated() == gv.accelerator.memory_allocated()
    assert gv.accelerator.memory_reserved() >= 0


def test_the_cpu_is_none():
    with pytest.raises(ValueError, match=r"Expected a .* device, but got: cpu"):
        gv.accelerator.synchronize("cpu")


@pytest.mark.parametrize("module", [gv.accelerator, gv.cuda, gv.sim])
def test_every_public_name_is_there(module):
    assert sorted(module.__all__) == module.__all__
    for name in module.__all__:
        assert callable(getattr(module, name))
        assert name == "Latency" or getattr(module, name).__doc__
