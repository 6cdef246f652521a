import re

import gradviz as gv
from gradviz import nn
from gradviz.analysis.graphs.module_calls import calls_before
from gradviz.analysis.tables.passes import passes


class Pair(nn.Module):
    """Calls its layer as often as it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: gv.Tensor, times: int) -> gv.Tensor:
        for _ in range(times):
            x = self.layer(x)
        return x


def recorded(*steps):
    """Calls before each pass, of a program whose steps call a layer so often.

    A number less than zero is a step without gradients.
    """
    model = Pair()
    with gv.record() as recording:
        for times in steps:
            if times < 0:
                with gv.no_grad():
                    model(gv.ones(1, 2), -times)
            else:
                model(gv.ones(1, 2), times).sum().backward()
    trace = recording.trace
    return [
        # Models of one class are numbered, whoever made them.
        {re.sub("#[0-9]+", "", path): times for path, times in calls.items()}
        for calls in (calls_before(trace, one) for one in passes(trace))
    ]


def test_each_call_before_a_pass_counts():
    assert recorded(3) == [{"Pair": 1, "Pair.layer": 3}]


def test_calls_before_the_pass_before_do_not_count():
    assert recorded(3, 2) == [
        {"Pair": 1, "Pair.layer": 3},
        {"Pair": 1, "Pair.layer": 2},
    ]


def test_calls_without_gradients_do_not_count():
    assert recorded(1, -5, 2)[1] == {"Pair": 1, "Pair.layer": 2}


def test_of_a_program_without_modules_nothing_is_known():
    with gv.record() as recording:
        (gv.ones(2, requires_grad=True) * 2.0).sum().backward()

    (one,) = passes(recording.trace)
    assert calls_before(recording.trace, one) == {}
