import pytest

import gradviz as gv
from gradviz.optim import LBFGS


def valley(x):
    """Rosenbrock's: hard to walk down by gradients alone."""
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


@pytest.fixture
def x():
    return gv.tensor([-1.2, 1.0], dtype=gv.float64, requires_grad=True)


def closure_of(optimizer, x, calls):
    def closure():
        optimizer.zero_grad()
        loss = valley(x)
        loss.backward()
        calls.append(loss.item())
        return loss

    return closure


def test_a_bent_valley_is_walked_down_in_a_few_steps(x):
    optimizer = LBFGS([x], max_iter=100, line_search_fn="strong_wolfe")
    calls = []

    first = optimizer.step(closure_of(optimizer, x, calls))

    assert first.item() == calls[0]
    assert x.tolist() == pytest.approx([1, 1], abs=1e-3)
    assert len(calls) < 60


def test_it_remembers_from_one_call_to_the_next(x):
    optimizer = LBFGS([x], lr=0.1, max_iter=3, max_eval=9, history_size=2)
    closure = closure_of(optimizer, x, [])
    for _ in range(3):
        optimizer.step(closure)

    state = optimizer.state[x]
    assert state["n_iter"] == 9
    assert len(state["old_stps"]) == 2


def test_the_loss_is_computed_no_more_often_than_allowed(x):
    optimizer = LBFGS([x], max_iter=100, max_eval=7, line_search_fn="strong_wolfe")
    calls = []

    optimizer.step(closure_of(optimizer, x, calls))

    assert len(calls) <= 8  # the search that reaches the limit ends


def test_nothing_happens_where_it_is_flat():
    x = gv.tensor([1.0, 1.0], requires_grad=True)
    optimizer = LBFGS([x])
    calls = []

    optimizer.step(closure_of(optimizer, x, calls))

    assert x.tolist() == [1, 1]
    assert len(calls) == 1


def test_a_parameter_without_a_gradient_stays(x):
    other = gv.tensor([5.0], dtype=gv.float64, requires_grad=True)
    optimizer = LBFGS([x, other], max_iter=4)

    optimizer.step(closure_of(optimizer, x, []))

    assert other.tolist() == [5]


def test_parameters_learn_on_their_device():
    x = gv.tensor([-1.2, 1.0], dtype=gv.float64, device="sim:1", requires_grad=True)
    optimizer = LBFGS([x], max_iter=100, line_search_fn="strong_wolfe")

    optimizer.step(closure_of(optimizer, x, []))

    assert x.tolist() == pytest.approx([1, 1], abs=1e-3)


def test_parameter_groups_a_missing_closure_and_an_unknown_search_are_refused(x):
    other = gv.tensor([5.0], requires_grad=True)

    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        LBFGS([{"params": [x]}, {"params": [other]}])
    with pytest.raises(TypeError, match="missing 1 required argument: 'closure'"):
        LBFGS([x]).step()
    optimizer = LBFGS([x], line_search_fn="golden")
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer.step(closure_of(optimizer, x, []))
