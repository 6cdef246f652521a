"""Every example runs, from any folder, with nothing but Python, and is traced."""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from gradviz.analysis.races.stream_order import stream_order
from gradviz.trace.checking.lifecycle import judge
from gradviz.trace.events import TaskBegun, Unexplained
from gradviz.trace.format.model import Trace
from gradviz.trace.reading.reader import load_trace
from tests.sampled import sampled
from tests.warm_python import WITH_PYTORCH, run_warm

EXAMPLES = Path(__file__).parents[2] / "examples"
#: What examples import that only need gradviz.
MODULES = ("gradviz.cli.run.command",)
NAMES = sorted(one.name for one in EXAMPLES.iterdir() if one.is_dir())


class Run(NamedTuple):
    """Output and effects of an example."""

    output: str
    trace: Trace

    def number(self, pattern):
        """The last number that follows `pattern` in the output."""
        return float(re.findall(rf"{pattern} (-?\d+\.\d+)", self.output)[-1])


@pytest.fixture
def run(tmp_path):
    """Runs an example under ``gradviz run``; warnings are errors."""

    def run(example, *arguments, timeout=100, modules=MODULES):
        path = tmp_path / "example.gvt"
        ended = run_warm(
            *("-W", "error", "-m", "gradviz", "run", "-f", "-o", path),
            *(EXAMPLES / example / "main.py", *arguments),
            modules=modules,
            cwd=tmp_path,
            timeout_s=timeout,
        )
        assert ended.exit_code == 0, ended.errors
        trace = load_trace(path)
        assert trace.losses.is_complete
        assert not list(judge(trace).violations)
        return Run(ended.output, trace)

    return run


def needs_pytorch():
    pytest.importorskip("torch", reason="the example is a program of PyTorch's")


def modules(trace):
    return {node.module for node in trace.nodes.values()}


def names(trace):
    return {node.name for node in trace.nodes.values()}


@pytest.mark.parametrize("seed", sampled(["0", "5"], 2))
def test_digits_are_read_with_at_least_95_percent_accuracy(run, seed):
    assert run("01_digits_mlp", "--seed", seed).number("test accuracy:") >= 95


def test_the_data_are_all_there():
    import numpy as np

    table = np.loadtxt(EXAMPLES / "01_digits_mlp" / "digits.csv.gz", delimiter=",")

    assert table.shape == (1797, 65)
    assert set(table[:, -1]) == set(range(10))


def test_three_devices_share_one_pass(run):
    output = run("02_three_devices").output

    assert "w0 on sim:0: gradient (16, 8)" in output
    assert "w1 on sim:1: gradient (16, 8)" in output


def test_a_shared_weight_serves_two_losses(run):
    assert "w_state, used 4 times" in run("03_shared_weights_two_outputs").output


def test_convolutions_begin_to_read_digits(run):
    result = run("04_digits_cnn", "--epochs", "1")

    assert result.number("test accuracy:") >= 90
    assert {"Reader.blocks.0.conv", "Reader.blocks.1.norm", "Reader.output"} <= modules(
        result.trace
    )


@pytest.mark.stress
@pytest.mark.parametrize("seed", ["0", "1", "2", "3"])
def test_convolutions_read_digits_with_at_least_97_percent_accuracy(run, seed):
    assert run("04_digits_cnn", "--seed", seed).number("test accuracy:") >= 97


@pytest.mark.parametrize(
    ("steps", "loss"), [("6", 4.9), pytest.param("20", 3.6, marks=pytest.mark.stress)]
)
def test_a_transformer_begins_to_read_python(run, steps, loss):
    result = run("05_char_transformer", "--steps", steps)

    assert result.number("final loss:") < loss  # guessing is 4.9
    assert "Transformer.encoder.layers.1.self_attn.out_proj" in modules(result.trace)


@pytest.mark.parametrize(
    ("steps", "loss"), [("6", 4.9), pytest.param("20", 3.6, marks=pytest.mark.stress)]
)
def test_an_lstm_begins_to_read_python(run, steps, loss):
    result = run("06_char_lstm", "--steps", steps)

    assert result.number("final loss:") < loss  # guessing is 4.9
    assert {"Reader.characters", "Reader.lstm", "Reader.output"} <= modules(
        result.trace
    )


@pytest.mark.stress
def test_a_transformer_learns_to_read_python(run):
    assert run("05_char_transformer", timeout=600).number("final loss:") < 2.3


@pytest.mark.stress
def test_an_lstm_learns_to_read_python(run):
    assert run("06_char_lstm", timeout=600).number("final loss:") < 2.2


def test_functions_of_one_s_own_are_differentiated(run):
    result = run("07_custom_function")

    assert "gradcheck: True" in result.output
    assert "second derivative: [0.     0.1966 0.25   0.105  0.    ]" in result.output
    assert "Round.apply(x): weights [3.0, -2.0, 1.0], loss 0.0000" in result.output
    assert {"SoftplusBackward", "RoundBackward"} <= names(result.trace)


def test_checkpointing_saves_memory_and_changes_no_gradient(run):
    result = run("08_checkpointing")

    (saved, same) = re.findall(
        r"saved: (\d+)%; the same gradients: (\w+)", result.output
    )[0]
    assert int(saved) >= 40
    assert same == "True"
    assert len(result.trace.tasks) == 1 + 1 + 8


def test_a_penalty_on_gradients_is_learned(run):
    result = run("09_gradient_penalty")

    assert result.number("final: difference") > 2
    assert result.number("penalty") < 0.1


def test_a_pipeline_learns_on_two_devices(run):
    result = run("10_two_device_pipeline")

    first, *_, last = map(float, re.findall(r"loss (\d\.\d+)", result.output))
    assert last < first / 2
    devices = {node.device for node in result.trace.nodes.values()}
    assert {"sim:0", "sim:1"} <= devices


def test_the_engine_runs_on_fractions(run):
    output = run("11_engine_without_tensors").output

    assert "2 x^3 - x^2 + 5 at x = 1/2: 5\n" in output
    assert "its derivative 6 x^2 - 2 x there: 1/2\n" in output


SMALL = ("12_devices_and_streams", "--size", "16", "--layers", "2")


def test_three_branches_run_on_streams_of_their_own(run):
    result = run(*SMALL)

    launched = result.trace.columns["kernel_launched"]["stream"].tolist()
    streams = {result.trace.strings[stream] for stream in launched}
    assert {"sim:0/0", "sim:1/0"} < streams
    assert len(streams) == 4


def test_streams_and_devices_change_no_number(run):
    import gradviz as gv

    numbers = [float(one) for one in re.findall(r"\d\.\d{4}", run(*SMALL).output)]

    gv.manual_seed(0)  # and what the example does, on the CPU
    x = gv.randn(64, 16)
    branches = [
        [(gv.randn(16, 16) * 0.25).requires_grad_() for _ in range(2)] for _ in range(3)
    ]
    loss = sum(
        ((x @ first).tanh() @ second).tanh().square().mean()
        for first, second in branches
    )
    loss.backward()
    norms = [weight.grad.norm().item() for layers in branches for weight in layers]
    assert numbers == pytest.approx([loss.item(), *norms], abs=1e-4)


@pytest.mark.parametrize(("flags", "code"), [((), 0), (("--forget",), 1)])
def test_a_wait_that_is_left_out_is_found(tmp_path, flags, code):
    example, *arguments = SMALL
    path = tmp_path / "example.gvt"
    done = run_warm(
        *("-W", "error", "-m", "gradviz", "run", "--check-streams", "-o", path),
        *(EXAMPLES / example / "main.py", *arguments, *flags),
        modules=MODULES,
        cwd=tmp_path,
    )

    assert done.exit_code == code
    assert ("races between streams: 1" in done.errors) == bool(code)
    assert ("missing: sim:0/0 must wait for sim:0/" in done.errors) == bool(code)
    assert len(stream_order(load_trace(path)).races) == code


@pytest.mark.parametrize("example", NAMES)
def test_every_example_says_how_to_run_it(example):
    text = (EXAMPLES / example / "README.md").read_text(encoding="utf-8")

    assert text.startswith(f"# {example[:2]}: ")
    assert "gradviz run main.py" in text


def test_a_failing_backward_leaves_the_parameters_behind_it_without_a_gradient(run):
    result = run("14_failing_backward")

    assert "the backward failed: a gradient of shape (4, 16) has a NaN" in result.output
    assert "encode.0.bias: no gradient" in result.output
    assert "score.weight: a gradient" in result.output
    assert [*result.trace.columns["node_failed"].rows("task")] == [(0,)]


def test_a_backward_of_ten_thousand_nodes_is_whole(run):
    result = run("15_ten_thousand_nodes")

    (nodes,) = re.findall(r"([\d,]+) nodes", result.output)
    assert 10_000 < int(nodes.replace(",", "")) == len(result.trace.nodes)


def test_trainers_share_the_parameters_of_a_server(run):
    result = run("16_parameter_server", "--epochs", "2")

    assert result.number("test accuracy:") >= 80
    assert len(result.output.split("trainer")) == 4
    assert {"SendRpcBackward", "RecvRpcBackward"} <= names(result.trace)


@pytest.mark.stress
def test_a_pipeline_of_three_workers_reads_digits(run):
    result = run("17_three_stage_pipeline")

    assert result.number("test accuracy:") >= 90


@pytest.mark.stress
def test_a_training_goes_on_when_a_worker_fails_and_when_it_is_gone(run):
    result = run("18_a_worker_fails")

    assert "step 20: Error on Node 0: Error on Node 2: a bit" in result.output
    # It leaves while others work: within a pass, whose error comes first, or not.
    assert re.search(r"^step 4\d: node 2 is down", result.output, re.MULTILINE)
    assert "its layer is on worker 1 now" in result.output
    assert re.search(r"^[23] failures, test accuracy:", result.output, re.MULTILINE)
    assert result.number("test accuracy:") >= 80


@pytest.mark.stress
@pytest.mark.parametrize(
    ("example", "epochs"),
    [
        ("16_parameter_server", ["--epochs", "2"]),
        ("17_three_stage_pipeline", ["--epochs", "3"]),
        ("18_a_worker_fails", []),
    ],
)
def test_workers_may_be_processes_as_well(example, epochs):
    program = EXAMPLES / example / "main.py"
    output = subprocess.run(
        [sys.executable, "-W", "error", program, "--transport", "local", *epochs],
        stdout=subprocess.PIPE,
        text=True,
        timeout=200,
        check=True,
    ).stdout
    assert float(re.findall(r"test accuracy: (\d+\.\d)", output)[-1]) >= 75


def share_with_own_line(trace, example):
    """Of all nodes, how many have a line of the program itself."""
    nodes = trace.nodes.values()
    own = [one for one in nodes if f"{example}/main.py:" in one.location]
    return len(own) / len(nodes)


def test_a_slow_line_of_pytorchs_program_makes_a_node_for_each_pixel(run):
    needs_pytorch()
    slow = run("21_pytorch_slow_step", "--steps", "1", modules=WITH_PYTORCH)
    mended = run(
        *("21_pytorch_slow_step", "--steps", "1", "--unbind"), modules=WITH_PYTORCH
    )

    def num_nodes(result, name):
        return [node.name for node in result.trace.nodes.values()].count(name)

    assert slow.output == mended.output
    assert num_nodes(slow, "SelectBackward0") == 64
    assert num_nodes(mended, "SelectBackward0") == 0
    assert num_nodes(mended, "UnbindBackward0") == 1


def test_a_residual_network_of_pytorchs_has_a_node_that_waits_for_two_gradients(run):
    needs_pytorch()
    result = run("22_pytorch_residual", "--steps", "1", modules=WITH_PYTORCH)

    given = result.trace.columns["gradient_buffered"]
    (node,) = given["node"][given["remaining"] > 0].tolist()
    assert result.trace.nodes[node].module == "Reader.embed"


def test_pytorch_trains_as_it_does_and_is_recorded(run):
    needs_pytorch()
    result = run("19_pytorch_training", modules=WITH_PYTORCH)

    assert result.number("test accuracy:") >= 95
    assert "Reader.blocks.1.conv" in modules(result.trace)
    depths = {
        event.reentrant_depth
        for event in result.trace.events()
        if isinstance(event, TaskBegun)
    }
    assert depths == {0, 1}
    assert share_with_own_line(result.trace, "19_pytorch_training") >= 0.99
    assert not any(isinstance(one, Unexplained) for one in result.trace.events())


def test_each_process_of_pytorch_has_a_trace(tmp_path):
    needs_pytorch()
    done = run_warm(
        *("-m", "gradviz", "run", "--follow-children", "-o", "ddp.gvt"),
        EXAMPLES / "20_pytorch_ddp" / "main.py",
        modules=WITH_PYTORCH,
        cwd=tmp_path,
    )

    assert done.exit_code == 0, done.errors
    sums = re.findall(r"rank \d: the parameters' sum is (\d+\.\d+)", done.output)
    assert len(sums) == 2
    assert sums[0] == sums[1]
    traces = [load_trace(path) for path in sorted(tmp_path.glob("ddp.*.gvt"))]
    assert [len(trace.tasks) for trace in traces] == [3, 3]
    assert all(share_with_own_line(one, "20_pytorch_ddp") >= 0.99 for one in traces)
    assert not any(list(judge(trace).violations) for trace in traces)
