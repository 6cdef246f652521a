"""Golden records through changes of a program, and golden files that are no good."""

import os
import random
import subprocess
import threading

import pytest

import gradviz as gv
from gradviz import sim
from gradviz.errors import UserError
from gradviz.testing import assert_same_backward
from gradviz.testing.golden.golden_file import golden_text, parse_golden


@pytest.fixture(autouse=True)
def no_update(monkeypatch):
    monkeypatch.delenv("GRADVIZ_UPDATE", raising=False)


@pytest.fixture
def golden(tmp_path, monkeypatch):
    """Write the golden file of a function; return its path."""

    def write(function, name="golden.txt", **options):
        path = tmp_path / name
        with monkeypatch.context() as patch:
            patch.setenv("GRADVIZ_UPDATE", "1")
            assert_same_backward(path, function, **options)
        return path

    return write


def failure(path, function, **options):
    with pytest.raises(AssertionError) as caught:
        assert_same_backward(path, function, **options)
    return str(caught.value)


class Net(gv.nn.Module):
    def __init__(self, edit=""):
        super().__init__()
        self.edit = edit
        self.left = gv.nn.Linear(3, 5 if edit == "shape" else 4)
        self.right = gv.nn.Linear(3, 5 if edit == "shape" else 4)

    def forward(self, x):
        if self.edit == "order":
            right = self.right(x)
            left = self.left(x)
        else:
            left = self.left(x)
            right = self.right(x)
        hidden = left * right
        if self.edit == "node":
            hidden = hidden.sin()
        if self.edit == "hook":
            hidden.register_hook(lambda grad: grad)
        if self.edit == "sync":
            hidden.register_hook(lambda grad: sim.synchronize("sim:0"))
        if self.edit == "edge":
            return (left + right).sum()
        return hidden.sum()


def step(edit=""):
    Net(edit)(gv.ones((2, 3))).backward()


class Renamed(gv.nn.Module):
    """Does what `Net` does, written otherwise."""

    def __init__(self):
        super().__init__()
        self.first = gv.nn.Linear(3, 4)
        self.rest = gv.nn.ModuleList([gv.nn.Linear(3, 4)])

    def forward(self, x):
        factors = [self.first(x), *(one(x) for one in self.rest)]
        return self.product(factors).sum()

    def product(self, factors):
        one, other = factors
        return one * other


def test_a_program_that_runs_again_is_the_same(golden):
    path = golden(step)

    assert_same_backward(path, step)
    with assert_same_backward(path):
        step()


def test_a_refactoring_that_changes_nothing_is_the_same(golden):
    assert_same_backward(golden(step), lambda: Renamed()(gv.ones((2, 3))).backward())


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ("order", "turn on cpu"),
        ("shape", "inputs float32[2,4] -> float32[2,5]"),
        ("shape", "saved bytes"),
        ("node", "+ Net/SinBackward0 float32[2,4] saved=32"),
        ("hook", "Net/MulBackward0: hooks nothing -> tensor_pre:Net.forward"),
        ("sync", "waits nothing -> host_waits_for_a_device"),
        ("edge", "- Net/MulBackward0 float32[2,4]"),
    ],
)
def test_a_change_of_the_backward_fails_and_is_told(golden, edit, words):
    message = failure(golden(step), lambda: step(edit))

    assert words in message
    assert message.startswith("the backward is not that of the golden record ")
    assert "To accept this: pytest --gradviz-update" in message


def test_a_node_that_is_new_is_the_only_change_that_is_told(golden):
    message = failure(golden(step), lambda: step("node"))

    assert len(message.splitlines()) == 3


def test_a_value_saved_before_the_block_is_unknown_and_the_message_says_why(golden):
    path = golden(step)
    loss = Net()(gv.ones((2, 3)))

    assert "run the forward inside of it" in failure(path, loss.backward)


def test_another_number_of_passes_is_told(golden):
    def steps(number):
        for _ in range(number):
            step()

    path = golden(lambda: steps(2))

    assert "pass x2" in path.read_text()
    assert "+ a pass of " in failure(path, lambda: steps(3))
    assert "- a pass of " in failure(path, step)


def test_a_pass_in_between_is_the_only_one_that_is_told(golden):
    def steps(has_other):
        step()
        if has_other:
            gv.ones(2, requires_grad=True).exp().sum().backward()
        step()

    message = failure(golden(lambda: steps(False)), lambda: steps(True))

    assert message.count("pass") == message.count("a pass of 3 nodes") + 2
    assert "pass 2:\n  + a pass of 3 nodes that was not there" in message


def test_lines_count_only_if_asked_for(golden):
    def one():
        gv.ones(2, requires_grad=True).sin().sum().backward()

    def other():
        gv.ones(2, requires_grad=True).sin().sum().backward()

    assert_same_backward(golden(one), other)
    message = failure(golden(one, lines=True), other, lines=True)
    assert "line test_same_backward.py:" in message


def test_a_failed_pass_is_recorded_as_such(golden):
    def failing(has_failed):
        y = gv.ones(2, requires_grad=True).sin()
        if has_failed:
            y.register_hook(lambda grad: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                y.exp().sum().backward()
        else:
            y.exp().sum().backward()

    assert_same_backward(golden(lambda: failing(True)), lambda: failing(True))
    message = failure(golden(lambda: failing(False)), lambda: failing(True))
    assert "the pass nothing -> failed" in message
    assert "end nothing -> not-run" in message


def test_passes_inside_of_nodes_are_told_with_their_node(golden):
    def nested():
        y = gv.ones(2, requires_grad=True).sin()
        y.register_hook(
            gv.enable_grad()(
                lambda grad: gv.ones(3, requires_grad=True).cos().sum().backward()
            )
        )
        y.sum().backward()

    path = golden(nested)

    assert "pass inside=/SinBackward0" in path.read_text()
    assert_same_backward(path, nested)


def test_an_error_of_the_block_is_its_own_and_writes_nothing(golden, monkeypatch):
    path = golden(step)
    text = path.read_text()
    monkeypatch.setenv("GRADVIZ_UPDATE", "1")

    def broken():
        step("node")
        raise KeyError

    with pytest.raises(KeyError):
        assert_same_backward(path, broken)

    assert path.read_text() == text


def test_the_result_of_the_function_is_returned(golden):
    path = golden(step)

    assert assert_same_backward(path, lambda: (step(), 7)[1]) == 7


def test_without_a_golden_file_it_fails_and_says_how_to_write_one(tmp_path):
    message = failure(tmp_path / "new" / "x.txt", step)

    assert "there is no golden record" in message
    assert "pytest --gradviz-update, or GRADVIZ_UPDATE=1" in message
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_not_there_is_made(golden, tmp_path):
    golden(step, name="deep/er/x.txt")

    assert [x.name for x in (tmp_path / "deep" / "er").iterdir()] == ["x.txt"]


@pytest.mark.parametrize("is_update", [False, True])
def test_a_block_without_a_backward_fails(golden, monkeypatch, is_update):
    path = golden(step)
    if is_update:
        monkeypatch.setenv("GRADVIZ_UPDATE", "1")

    assert "no backward pass ran" in failure(path, lambda: None)


def test_the_golden_file_of_another_program_is_one_line(golden):
    def chain(op):
        x = gv.ones((3, 3), requires_grad=True)
        for _ in range(12):
            x = op(x)
        x.sum().backward()

    message = failure(
        golden(lambda: chain(lambda x: x.sin())), lambda: chain(lambda x: x @ x)
    )

    assert "is of another program" in message
    assert len(message.splitlines()) == 1


def lines_of(text, begin, end):
    return "".join(text.splitlines(keepends=True)[begin:end])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda text: "", "is empty"),
        (
            lambda text: "Two roads diverged in a yellow wood\n",
            "is no golden record of a backward: it begins with 'Two roads",
        ),
        (
            lambda text: text.replace("backward 1", "backward 2"),
            "is of version 2, and this gradviz reads 1",
        ),
        (
            lambda text: text.replace("\nNet/Mul", "\n<<<<<<< HEAD\nNet/Mul"),
            "line 7, has a merge conflict",
        ),
        (lambda text: lines_of(text, 0, -2), "the line 'end' is missing"),
        (lambda text: lines_of(text, 0, -3)[:-4], "the line 'end' is missing"),
        (
            lambda text: text.replace(lines_of(text, 6, 7), ""),
            "no line is called 'Net/MulBackward0'",
        ),
        (
            lambda text: text.replace(lines_of(text, 6, 7), 2 * lines_of(text, 6, 7)),
            "'Net/MulBackward0' is there twice",
        ),
        (lambda text: text.replace("saved=", "saved "), "is not expected there"),
        (lambda text: text.replace("\npass\n", "\n"), "expected 'pass'"),
        (
            lambda text: lines_of(text, 0, 1) + "pass\nend\n",
            "the pass has no nodes",
        ),
    ],
)
def test_a_file_that_is_no_good_is_one_clear_line(golden, spoil, words):
    path = golden(step)
    path.write_text(spoil(path.read_text()))

    with pytest.raises(UserError) as caught:
        assert_same_backward(path, step)

    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_of_bytes_and_a_folder_are_one_clear_line(tmp_path):
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(UserError, match="it is not a string"):
        assert_same_backward(tmp_path / "bytes", step)
    with pytest.raises(UserError, match="cannot read the golden record"):
        assert_same_backward(tmp_path, step)


def test_names_that_would_be_more_than_names_are_escaped(golden):
    class Odd(gv.nn.Module):
        def __init__(self):
            super().__init__()
            self.add_module("a b/c#2:1\n<<<<<<< x", gv.nn.Linear(2, 2))

        def forward(self, x):
            (part,) = self.children()
            return part(x).sum()

    def program():
        Odd()(gv.ones((1, 2))).backward()

    path = golden(program)

    assert_same_backward(path, program)
    assert "a%20b%2Fc%232%3A1%0A<<<<<<<%20x" in path.read_text()


def test_a_golden_file_is_read_as_it_was_written(golden):
    text = golden(step).read_text()

    assert golden_text(parse_golden(text, "x")) == text


def test_other_models_of_the_process_change_no_line(golden):
    text = golden(step).read_text()
    kept = [Net() for _ in range(3)]
    for one in kept:
        one(gv.ones((2, 3))).backward()

    assert golden(step).read_text() == text


OPS = (
    lambda one, other: one * other,
    lambda one, other: one + other,
    lambda one, _: one.sin(),
    lambda one, _: one.cos(),
)


def random_program(seed):
    """Return a program over three devices, of which threads decide what is late."""

    def program():
        rng = random.Random(seed)
        some = [
            gv.ones((2, 3), requires_grad=True).to(device)
            for device in ("cpu", "sim:0", "sim:1")
        ]
        for _ in range(20):
            one, other = rng.choice(some), rng.choice(some)
            some.append(rng.choice(OPS)(one, other.to(one.device)))
        sum((x.to("cpu") for x in some[-6:]), gv.zeros((2, 3))).sum().backward()

    return program


@pytest.mark.parametrize("seed", range(4))
def test_golden_files_hold_nothing_that_timing_decides_between_devices(golden, seed):
    count = sim.device_count()
    sim.set_device_count(2)
    texts = {golden(random_program(seed)).read_text() for _ in range(2)}
    sim.set_device_count(count)

    assert len(texts) == 1


def test_passes_of_threads_are_in_an_order_that_no_race_decides(golden):
    def work(size):
        gv.ones(size, requires_grad=True).sin().sum().backward()

    def program(sizes):
        threads = [threading.Thread(target=work, args=(size,)) for size in sizes]
        for one in threads:
            one.start()
            one.join()
        work(9)

    path = golden(lambda: program([1, 2, 3, 2]))
    text = path.read_text()

    assert text.index("float32[9]") < text.index("float32[1]")
    assert text.count("on-another-thread") == 3
    assert golden(lambda: program([3, 2, 1, 2])).read_text() == text


def test_branches_that_change_different_parts_merge(golden, tmp_path):
    def program(first, second):
        x = gv.ones(3, requires_grad=True)
        for has_extra in (first, second):
            x = x.sin().exp().sin().cos()
            x = x.tanh() if has_extra else x
        x.sum().backward()

    def folder(name, *edits):
        return golden(lambda: program(*edits), name=name)

    base = folder("base", False, False)
    mine, theirs = folder("mine", True, False), folder("theirs", False, True)
    done = subprocess.run(
        ["git", "merge-file", "-p", mine, base, theirs],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(tmp_path)},
    )

    assert done.returncode == 0
    assert "TanhBackward0" in done.stdout
