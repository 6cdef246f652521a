import pytest

import gradviz as gv
from gradviz.optim import LBFGS, SGD, Adam, Optimizer
from gradviz.trace.events import OptimizerBegun, OptimizerEnded, TaskBegun


@pytest.fixture
def x():
    return gv.tensor([1.0, 2.0], requires_grad=True)


def test_a_step_goes_against_the_gradient_in_place(x):
    (x * x).sum().backward()
    array = x.detach()

    SGD([x], lr=0.25).step()

    assert array.tolist() == [0.5, 1]


def test_a_parameter_without_gradient_stays(x):
    SGD([x], lr=1.0).step()

    assert x.tolist() == [1, 2]


def test_a_step_is_no_part_of_a_graph(x):
    (x * x).sum().backward()
    SGD([x], lr=0.25).step()

    assert x.is_leaf
    assert x.requires_grad


def test_a_step_changes_what_was_saved_and_backward_notices(x):
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    SGD([x], lr=0.25).step()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_the_closure_is_called_with_gradients_on(x):
    optimizer = SGD([x], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with gv.no_grad():
        loss = optimizer.step(closure)

    assert loss.item() == 5
    assert x.tolist() == [0.5, 1]


def test_groups_have_options_of_their_own(x):
    y = gv.tensor([1.0], requires_grad=True)
    optimizer = SGD([{"params": x}, {"params": [y], "lr": 0.5}], lr=0.25)
    z = gv.tensor([1.0], requires_grad=True)
    optimizer.add_param_group({"params": z})

    (x.sum() + y.sum() + z.sum()).backward()
    optimizer.step()

    assert (x.tolist(), y.tolist(), z.tolist()) == ([0.75, 1.75], [0.5], [0.75])


def test_named_parameters_are_taken(x):
    assert SGD([("x", x)], lr=1.0).param_groups[0]["params"] == [x]


def test_gradients_are_forgotten_or_set_to_zero(x):
    optimizer = SGD([x], lr=1.0)
    x.sum().backward()
    grad = x.grad

    optimizer.zero_grad(set_to_none=False)
    assert x.grad is grad
    assert grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert x.grad is None


def test_a_state_is_numbers_and_copies(x):
    optimizer = Adam([x])
    x.sum().backward()
    optimizer.step()

    state = optimizer.state_dict()

    assert state["param_groups"][0]["params"] == [0]
    assert set(state["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}


def test_a_loaded_state_is_the_optimizer_s_own(x):
    y = gv.tensor([1.0, 2.0], requires_grad=True)
    first, second = Adam([x]), Adam([y], lr=0.7)
    x.sum().backward()
    first.step()
    second.load_state_dict(first.state_dict())
    kept = second.state[y]["exp_avg"].tolist()

    first.step()

    assert second.param_groups[0]["lr"] == 1e-3
    assert second.state[y]["exp_avg"].tolist() == kept


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([{"params": [0]}, {"params": [1]}], "different number of parameter groups"),
        ([{"params": [0, 1]}], "doesn't match the size of optimizer's group"),
    ],
)
def test_a_state_of_other_groups_is_refused(x, groups, words):
    with pytest.raises(ValueError, match=words):
        SGD([x]).load_state_dict({"state": {}, "param_groups": groups})


def test_an_optimizer_of_one_s_own_says_how_a_parameter_changes(x):
    class SignDescent(Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def update(self, x, grad, group, state):
            state["count"] = state.get("count", 0) + 1
            return group["lr"] * (grad / abs(grad))

    optimizer = SignDescent([x], lr=0.5)
    (x * x).sum().backward()
    optimizer.step()

    assert x.tolist() == [0.5, 1.5]
    assert optimizer.state[x] == {"count": 1}


def test_or_defines_the_whole_step(x):
    class Halving(Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        @gv.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.mul_(0.5)

    Halving([x]).step()

    assert x.tolist() == [0.5, 1]


def test_the_text_lists_the_options(x):
    text = repr(SGD([x], lr=0.5))

    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "    lr: 0.5\n" in text


def test_hooks_see_each_step_and_may_change_what_it_is_called_with(x):
    optimizer = SGD([x], lr=0.25)
    seen = []

    def before(optimizer, args, kwargs):
        seen.append(("before", args, kwargs))
        return (lambda: seen.append("closure"),), {}

    def after(optimizer, args, kwargs):
        seen.append("after")

    first = optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)
    optimizer.step()
    first.remove()
    optimizer.step()

    assert seen == [("before", (None,), {}), "closure", "after", "after"]


def test_names_of_parameters_are_kept(x):
    optimizer = SGD([("x", x)], lr=0.25)

    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["x"]
    assert optimizer.param_groups[0]["params"] == [x]


def test_names_are_there_for_all_or_none(x):
    other = gv.tensor([1.0], requires_grad=True)
    optimizer = SGD([("x", x)], lr=0.25)

    with pytest.raises(ValueError, match="Some param names are missing"):
        SGD([("x", x), other])
    with pytest.raises(ValueError, match="cannot add param group without names"):
        optimizer.add_param_group({"params": [other]})


def test_a_parameter_that_is_there_twice_is_warned_of(x):
    with pytest.warns(UserWarning, match="duplicate parameters"):
        SGD([x, x])


def test_an_optimizer_accepts_pytorchs_speed_options_and_refuses_differentiable(x):
    optimizer = Adam([x], foreach=False, fused=True, capturable=True)

    assert optimizer.defaults["fused"] is True
    with pytest.raises(TypeError, match="unexpected keyword argument 'capturable'"):
        SGD([x], capturable=True)
    with pytest.raises(ValueError, match="a step is no part of any graph"):
        SGD([x], differentiable=True)


def test_parameters_learn_on_their_devices():
    x = gv.tensor([1.0, 2.0], device="sim:1", requires_grad=True)
    optimizer = Adam([x], lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (x * x).sum().backward()
        optimizer.step()

    assert x.cpu().tolist() == pytest.approx([0.03, 1.0], abs=0.01)
    assert str(optimizer.state[x]["exp_avg"].device) == "sim:1"


def test_the_number_of_steps_is_a_tensor_on_the_host_whatever_the_parameter_is():
    x = gv.tensor([1.0], dtype=gv.float16, device="sim:1", requires_grad=True)
    optimizer = Adam([x])
    x.grad = gv.ones_like(x)
    optimizer.step()
    other = Adam([x])

    other.load_state_dict(optimizer.state_dict())
    other.step()

    assert optimizer.state[x]["step"].item() == 1
    step = other.state[x]["step"]
    assert (step.item(), step.dtype, str(step.device)) == (2, gv.float32, "cpu")


def test_a_number_of_steps_may_be_just_a_number(x):
    optimizer = Adam([x])
    optimizer.state[x]["step"] = 3
    x.grad = gv.ones_like(x)
    optimizer.step()

    assert optimizer.state[x]["step"].item() == 4


@pytest.mark.parametrize(
    "state",
    [
        {0: {"momentum_buffer": gv.zeros(3)}},
        {7: {"momentum_buffer": gv.zeros(2)}},
    ],
    ids=["shape", "number"],
)
def test_a_state_of_other_parameters_is_an_error_that_changes_nothing(state):
    optimizer = SGD([gv.zeros(2, requires_grad=True)], lr=1.0, momentum=0.5)
    groups = [{**optimizer.state_dict()["param_groups"][0], "lr": 3.0}]

    with pytest.raises(ValueError, match="loaded state dict contains"):
        optimizer.load_state_dict({"state": state, "param_groups": groups})

    assert optimizer.param_groups[0]["lr"] == 1.0
    assert not optimizer.state


def steps_in(recording):
    """Describe the reports of optimizers and backward passes."""
    told = []
    for event in recording.events():
        match event:
            case OptimizerBegun():
                told.append(f"{event.name} begins")
            case OptimizerEnded():
                told.append("raises" if event.failed else "ends")
            case TaskBegun():
                told.append("backward")
    return told


def test_a_recording_has_every_step_with_what_its_closure_does(x):
    def closure():
        loss = (x * x).sum()
        loss.backward()
        return loss

    with gv.record() as recording:
        SGD([x]).step()
        Adam([x]).step(closure)
        LBFGS([x], max_iter=1).step(closure)
    SGD([x]).step()

    assert steps_in(recording) == [
        *("SGD begins", "ends"),
        *("Adam begins", "backward", "ends"),
        *("LBFGS begins", "backward", "ends"),
    ]


def test_a_step_that_raises_ends_in_a_recording(x):
    with gv.record() as recording, pytest.raises(ZeroDivisionError):
        SGD([x]).step(lambda: 1 / 0)

    assert steps_in(recording) == ["SGD begins", "raises"]


def test_a_step_of_ones_own_is_in_a_recording_too(x):
    class Signs(Optimizer):
        def step(self, closure=None):
            return 7

    optimizer = Signs([x], {})
    with gv.record() as recording:
        assert optimizer.step() == 7

    assert steps_in(recording) == ["Signs begins", "ends"]
