import pytest

from gradviz.utils import data


@pytest.mark.parametrize("part", ["dataloader", "dataset", "sampler"])
def test_names_of_a_part_are_in_the_package_too(part):
    module = getattr(data, part)

    for name in module.__all__:
        assert getattr(module, name) is getattr(data, name)
        assert getattr(module, name).__module__ == f"gradviz.utils.data.{part}"


def test_the_parts_are_the_whole():
    parts = (data.dataloader, data.dataset, data.sampler)

    assert sorted(name for part in parts for name in part.__all__) == data.__all__
