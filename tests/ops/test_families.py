"""Users of a family of ops, read from sources without running them."""

from tests.ops.cases.families import measured, parsed, uses

CONVOLUTION = "gradviz.ops.layers.convolution"
OPS = frozenset({"conv1d", "conv2d"})


def is_used_in(source: str) -> bool:
    return uses(parsed(source), CONVOLUTION, OPS)


def test_a_program_uses_a_family_that_it_imports_or_an_op_that_it_names():
    assert is_used_in(f"from {CONVOLUTION} import anything")
    assert is_used_in("from gradviz.ops.layers import convolution")
    assert is_used_in("F.conv2d(x, weight)")
    assert is_used_in("getattr(F, 'conv2d')(x)")
    assert is_used_in("getattr(F, f'conv{dims}d')(x)")


def test_a_program_does_not_use_what_another_library_has_or_a_text_mentions():
    assert not is_used_in("torch.conv2d(x, weight)")
    assert not is_used_in("raise ValueError('a conv2d needs a weight')")
    assert not is_used_in("print(f'{x}')")


def test_a_family_that_a_used_one_imports_is_used_by_other_ops():
    found = {one.name: one.users for one in measured()}

    assert "nn" in found["layers.convolution"]
    assert found["layers.patch_columns"] == ("other ops",)
