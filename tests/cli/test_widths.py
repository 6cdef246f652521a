"""Every view on narrow terminals, of a program whose names are long."""

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

import gradviz as gv
from gradviz.capture.session import record
from gradviz.trace.reading.reader import load_trace

PROGRAM = """
class AnEncoderLayerWithAVeryLongNameIndeed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a_projection_into_the_hidden_space = nn.Linear(8, 8)
        self.another_projection_out_of_the_hidden_space = nn.Linear(8, 8)

    def forward(self, x):
        hidden = self.a_projection_into_the_hidden_space(x).tanh()
        return self.another_projection_out_of_the_hidden_space(hidden)


class AFunctionOfTheUserWithAnEndlesslyLongName(gv.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with gv.enable_grad():
            inner = x.detach().requires_grad_()
            (inner * inner).sum().backward()
        return grad * 2


Base = AFunctionOfTheUserWithAnEndlesslyLongName


class AFailureThatTellsALotMoreThanATableCanHold(Base):
    @staticmethod
    def backward(ctx, grad):
        raise ValueError("something went very wrong here after 1,234,567 steps, " * 3)


model = AnEncoderLayerWithAVeryLongNameIndeed()
optimizer = gv.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    out = AFunctionOfTheUserWithAnEndlesslyLongName.apply(model(gv.randn(4, 8)))
    loss = (out.to("sim") * 2).to("cpu").sum() + out.sum()
    loss.backward(retain_graph=step == 1)
    optimizer.step()
loss = AFailureThatTellsALotMoreThanATableCanHold.apply(model(gv.randn(4, 8))).sum()
with pytest.raises(ValueError):
    loss.backward()
"""

#: Views of which no figure may be left out however little room there is.
WHOLE = [
    "show summary TRACE",
    "show summary --by name TRACE",
    "show summary --by module TRACE",
    "show summary --by line TRACE",
    "show critical --pass slowest TRACE",
    "show critical --pass failed TRACE",
    "show utilization --pass slowest TRACE",
    "show memory --pass slowest TRACE",
    "show memory --pass slowest --at 0.1ms TRACE",
    "show queues --pass slowest TRACE",
    "show queues --pass slowest --at 0.1ms TRACE",
    "show order --pass slowest --predicted TRACE",
    "explain TRACE AFailureThatTellsALotMoreThanATableCanHoldBackward",
    "simulate --pass slowest --device-threads 2 --policy random:3 TRACE",
    "check --advice TRACE",
    "diff TRACE:FIRST TRACE:slowest",
    "show events --pass slowest TRACE",
    "replay --plain --pass slowest TRACE",
]
#: Views that have more to tell where there is more room.
AS_FITS = [
    "show order --pass slowest TRACE",
    "show order --pass failed TRACE",
    "show timeline --pass slowest TRACE",
    "show timeline --step slowest TRACE",
]
#: What a terminal wraps.
UNWRAPPED = ("check", "diff", "show events", "replay")

UNIT = r"(?: (?:ns|µs|ms|s|B|KiB|MiB|GiB|TiB)\b|%)"
NUMBER = re.compile(rf"(?<![\w.:…])\d[\d,]*(?:\.\d+)?{UNIT}?")
FIGURE = re.compile(rf"(?<![\w.:…])\d[\d,]*(?:\.\d+)?{UNIT}")


@pytest.fixture(scope="module")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    name = "a_rather_long_name_of_the_file_that_trains_the_model_for_the_paper"
    path = tmp_path_factory.mktemp("traces") / f"{name}.gvt"
    code = compile(PROGRAM, f"/home/somebody/{name}.py", "exec")
    with record(path):
        exec(code, {"gv": gv, "nn": gv.nn, "pytest": pytest, "__name__": "program"})
    return path


@pytest.mark.parametrize("view", WHOLE + AS_FITS)
def test_no_number_is_cut_or_parted_from_its_unit(view, long_names, call, monkeypatch):
    first, *_ = load_trace(long_names).tasks
    words = view.replace("TRACE", str(long_names)).replace("FIRST", str(first)).split()

    def lines(width: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        result = call(*words)
        assert result.stdout, result.stderr
        return result.stdout.splitlines()

    wide = lines(400)
    for width in (40, 80):
        narrow = lines(width)
        assert found(NUMBER, narrow) <= found(NUMBER, wide)
        if view in WHOLE:
            assert found(FIGURE, narrow) == found(FIGURE, wide)
        if not view.startswith(UNWRAPPED):
            assert max(map(cell_len, narrow)) <= width


def found(pattern: re.Pattern[str], lines: list[str]) -> set[str]:
    return {one for line in lines for one in pattern.findall(line)}
