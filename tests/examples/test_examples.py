"""Every example runs, from any folder, with nothing but Python."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(example, *arguments, cwd):
    return subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / example / "main.py", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    ).stdout


@pytest.mark.parametrize("seed", ["0", "5"])
def test_digits_are_read_with_at_least_95_percent_accuracy(tmp_path, seed):
    output = run("01_digits_mlp", "--seed", seed, cwd=tmp_path)

    (accuracy,) = re.findall(r"^test accuracy: (\d+\.\d) %$", output, re.MULTILINE)
    assert float(accuracy) >= 95


def test_the_data_are_all_there():
    import numpy as np

    table = np.loadtxt(EXAMPLES / "01_digits_mlp" / "digits.csv.gz", delimiter=",")

    assert table.shape == (1797, 65)
    assert set(table[:, -1]) == set(range(10))


def test_three_devices_share_one_pass(tmp_path):
    output = run("02_three_devices", cwd=tmp_path)

    assert "w0 on sim:0: gradient (16, 8)" in output
    assert "w1 on sim:1: gradient (16, 8)" in output


def test_a_shared_weight_serves_two_losses(tmp_path):
    assert "w_state, used 4 times" in run("03_shared_weights_two_outputs", cwd=tmp_path)


@pytest.mark.parametrize("example", sorted(one.name for one in EXAMPLES.iterdir()))
def test_every_example_says_how_to_run_it(example):
    text = (EXAMPLES / example / "README.md").read_text(encoding="utf-8")

    assert "gradviz run main.py" in text
