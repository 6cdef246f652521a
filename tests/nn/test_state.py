import re

import numpy as np
import pytest

import gradviz as gv
from gradviz import nn


def make_model():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def test_the_state_has_parameters_and_persistent_buffers():
    model = make_model()
    model.register_buffer("scratch", gv.zeros(1), persistent=False)

    assert list(model.state_dict()) == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    ]


def test_the_state_shares_memory_and_has_no_graph():
    model = make_model()
    state = model.state_dict(prefix="net.")

    with gv.no_grad():
        model[0].bias.fill_(7)

    assert state["net.0.bias"].tolist() == [7, 7, 7]
    assert not state["net.0.bias"].requires_grad
    assert model.state_dict(keep_vars=True)["0.bias"] is model[0].bias


def test_a_state_makes_two_models_the_same():
    model, other = make_model(), make_model()
    x = gv.randn(4, 2)

    keys = other.load_state_dict(model.state_dict())

    assert repr(keys) == "<All keys matched successfully>"
    assert model.eval()(x).tolist() == other.eval()(x).tolist()


def test_all_mismatches_of_a_state_are_reported_at_once():
    state = make_model().state_dict()
    del state["0.bias"], state["1.weight"]
    state |= {"0.weight": gv.zeros(3, 5), "x": gv.zeros(1), "1.bias": 3, "0.y.z": 1}

    with pytest.raises(RuntimeError) as error:
        make_model().load_state_dict(state)

    lines = str(error.value).split("\n\t")
    assert lines[:3] == [
        "Error(s) in loading state_dict for Sequential:",
        'Missing key(s) in state_dict: "0.bias", "1.weight". ',
        'Unexpected key(s) in state_dict: "x", "0.y.z". ',
    ]
    assert lines[3].startswith("size mismatch for 0.weight: copying a param with shape")
    assert lines[4].startswith('While copying the parameter named "1.bias", expected')
    assert len(lines) == 5


def test_without_strictness_names_are_returned():
    keys = make_model().load_state_dict({"x": gv.zeros(1)}, strict=False)

    assert keys.unexpected_keys == ["x"]
    assert len(keys.missing_keys) == 7


def test_shapes_matter_in_any_case():
    with pytest.raises(RuntimeError, match=re.escape("size mismatch for 0.bias")):
        make_model().load_state_dict({"0.bias": gv.zeros(1)}, strict=False)


@pytest.mark.parametrize(
    "wrong", [{"0.weight": gv.zeros(1)}, {"1.weight": "text"}, {"x": gv.zeros(1)}]
)
def test_nothing_is_loaded_if_something_does_not_fit(wrong):
    model = make_model()
    before = [one.tolist() for one in model.state_dict().values()]
    state = {name: one + 1 for name, one in model.state_dict().items()} | wrong

    with pytest.raises(RuntimeError):
        model.load_state_dict(state)

    assert [one.tolist() for one in model.state_dict().values()] == before


def test_a_hook_after_loading_may_forgive_names():
    model = make_model()
    model.register_load_state_dict_post_hook(lambda _, keys: keys.missing_keys.clear())

    model.load_state_dict({"0.bias": gv.ones(3)})

    assert model[0].bias.tolist() == [1, 1, 1]


class OnlyDlpack:
    """A tensor of a library that NumPy knows by its protocol alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize(
    "value",
    [np.ones(3), np.ones(3, np.float32), [1.0, 1.0, 1.0], OnlyDlpack(np.ones(3))],
    ids=["float64", "float32", "list", "dlpack"],
)
def test_values_that_numpy_can_read_are_loaded(value):
    model = nn.Linear(2, 3)

    model.load_state_dict({"bias": value}, strict=False)
    model.load_state_dict({"bias": value}, strict=False, assign=True)

    assert model.bias.tolist() == [1, 1, 1]
    assert model.bias.requires_grad


def test_a_tensor_of_pytorch_that_numpy_cannot_read_is_told_how():
    class Unreadable:
        def __array__(self, *_, **__):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

    Unreadable.__module__ = "torch"

    with pytest.raises(TypeError, match=r"value.detach\(\).cpu\(\).float\(\).numpy"):
        nn.Linear(2, 3).load_state_dict({"bias": Unreadable()}, strict=False)


def test_a_tensor_can_be_taken_over_instead_of_copied():
    model = nn.Linear(2, 1, bias=False)
    weight = gv.ones(1, 2, dtype=gv.float64)

    model.load_state_dict({"weight": weight}, assign=True)

    assert isinstance(model.weight, nn.Parameter)
    assert model.weight.dtype == gv.float64
    weight.fill_(5)
    assert model.weight.tolist() == [[5, 5]]


def test_a_state_is_a_mapping():
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        make_model().load_state_dict([])


def test_extra_state_goes_along():
    class Counting(nn.Module):
        count = 3

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    first, second = nn.Sequential(Counting()), nn.Sequential(Counting())
    first[0].count = 8

    second.load_state_dict(first.state_dict())

    assert second[0].count == 8
    with pytest.raises(RuntimeError, match=re.escape('"0._extra_state"')):
        second.load_state_dict({})


def test_a_hook_can_edit_what_is_missing():
    model = make_model()
    with model.register_load_state_dict_post_hook(
        lambda module, keys: keys.missing_keys.clear()
    ):
        model.load_state_dict({})

    with pytest.raises(RuntimeError, match="Missing"):
        model.load_state_dict({})


def test_hooks_see_the_state_go_out_and_come_in():
    model = nn.Sequential(nn.Linear(1, 1))
    seen = []
    model[0].register_state_dict_pre_hook(lambda *args: seen.append(args[1:]))
    model[0].register_state_dict_post_hook(lambda _, state, *rest: seen.append(rest))
    state = model.state_dict()

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        state[f"{prefix}bias"] = state.pop(f"{prefix}shift")

    handle = model[0].register_load_state_dict_pre_hook(rename)
    renamed = {key.replace("bias", "shift"): one for key, one in state.items()}
    model.load_state_dict(renamed)
    handle.remove()

    assert seen == [("0.", False), ("0.", {"version": 1})]
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict(renamed)
