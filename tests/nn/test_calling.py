import contextlib

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.trace.checking.lifecycle import judge
from gradviz.trace.events import ForwardBegun, ForwardEnded


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


def calls_in(recording):
    """The modules that were called: path, class, how deep inside others, failed."""
    found, inside = {}, []
    for event in recording.events():
        match event:
            case ForwardBegun():
                found[event.call] = [event.module, event.name, len(inside), None]
                inside.append(event.call)
            case ForwardEnded():
                assert inside.pop() == event.call
                found[event.call][-1] = event.failed
    assert not inside
    return list(map(tuple, found.values()))


def test_a_recording_has_every_call_of_a_module():
    class Recorded(nn.Module):
        def __init__(self):
            super().__init__()
            self.twice = nn.Sequential(Double(), nn.ReLU())
            self.other = Double()

        def forward(self, x):
            return self.twice(self.other(x))

    model = Recorded()
    with gv.record() as recording:
        model(gv.ones(2))
    model(gv.ones(2))

    assert calls_in(recording) == [
        ("Recorded", "Recorded", 0, False),
        ("Recorded.other", "Double", 1, False),
        ("Recorded.twice", "Sequential", 1, False),
        ("Recorded.twice.0", "Double", 2, False),
        ("Recorded.twice.1", "ReLU", 2, False),
    ]
    assert judge(recording.trace).violations == ()


def test_the_call_of_a_module_that_raises_ends_in_a_recording():
    class Careful(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Fails()

        def forward(self, x):
            with contextlib.suppress(ValueError):
                self.part(x)
            return x

    with gv.record() as recording:
        Careful()(1)

    assert calls_in(recording) == [
        ("Careful", "Careful", 0, False),
        ("Careful.part", "Fails", 1, True),
    ]


def test_hooks_see_the_same_while_a_recording_listens():
    model = Double()
    model.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    model.register_forward_hook(lambda module, args, result: result + 5)

    with gv.record():
        assert model(1, plus=3) == 12


def test_a_call_is_reported_to_its_end_to_whom_it_was_reported():
    class Closing(nn.Module):
        def forward(self, recording):
            recording.close()
            return gv.record()

    first = gv.record()
    with Closing()(first) as second:
        pass

    kinds = [type(event) for event in first.events()]
    assert kinds == [ForwardBegun]
    assert list(second.events()) == []
