import pytest

from gradviz import nn


class Double(nn.Module):
    def forward(self, x, *, plus=0):
        return x * 2 + plus


class Fails(nn.Module):
    def forward(self, x):
        raise ValueError("no")


def test_a_pre_hook_sees_and_changes_the_arguments():
    model = Double()
    model.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    model.register_forward_pre_hook(lambda module, args: args[0] + 10)

    assert model(1) == 24


def test_a_hook_sees_and_changes_the_result():
    model = Double()
    model.register_forward_hook(lambda module, args, result: result + args[0])

    assert model(3) == 9


def test_hooks_can_take_keyword_arguments():
    model = Double()
    model.register_forward_pre_hook(
        lambda module, args, kwargs: (args, {"plus": kwargs["plus"] + 1}),
        with_kwargs=True,
    )
    seen = []
    model.register_forward_hook(
        lambda module, args, kwargs, result: seen.append((args, kwargs, result)),
        with_kwargs=True,
    )

    model(1, plus=5)

    assert seen == [((1,), {"plus": 6}, 8)]


def test_hooks_are_called_in_order_and_prepended_ones_first():
    model, calls = Double(), []
    for name, first in (("a", False), ("b", False), ("c", True)):
        model.register_forward_hook(
            lambda *_, name=name: calls.append(name), prepend=first
        )

    model(1)

    assert calls == ["c", "a", "b"]


def test_a_removed_hook_is_not_called():
    model = Double()
    with model.register_forward_hook(lambda *_: 0):
        assert model(1) == 0
    assert model(1) == 2


def test_a_pre_hook_must_return_both_kinds_of_arguments():
    model = Double()
    model.register_forward_pre_hook(lambda *_: 3, with_kwargs=True)

    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        model(1)


def test_a_hook_can_insist_on_being_called():
    model, calls = Fails(), []
    model.register_forward_hook(lambda *_: calls.append("plain"))
    model.register_forward_hook(lambda *_: calls.append("always"), always_call=True)

    with pytest.raises(ValueError, match="no"):
        model(1)
    assert calls == ["always"]


def test_the_error_of_an_insisting_hook_does_not_hide_the_first_one():
    def fail(*_):
        raise KeyError("also no")

    model = Fails()
    model.register_forward_hook(fail, always_call=True)

    with (
        pytest.warns(UserWarning, match="also no"),
        pytest.raises(ValueError, match="no"),
    ):
        model(1)
