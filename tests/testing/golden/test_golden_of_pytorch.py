"""Golden records of backward passes of PyTorch's."""

import random
import threading

import pytest

from gradviz.testing import assert_same_backward
from gradviz.testing.golden.golden_file import parse_golden

torch = pytest.importorskip("torch")


@pytest.fixture
def golden(tmp_path, monkeypatch):
    """Write the golden file of a function; return its path."""

    def write(function, name="golden.txt"):
        path = tmp_path / name
        with monkeypatch.context() as patch:
            patch.setenv("GRADVIZ_UPDATE", "1")
            assert_same_backward(path, function)
        return path

    monkeypatch.delenv("GRADVIZ_UPDATE", raising=False)
    return write


def failure(path, function):
    with pytest.raises(AssertionError) as caught:
        assert_same_backward(path, function)
    return str(caught.value)


class Net(torch.nn.Module):
    def __init__(self, edit=""):
        super().__init__()
        self.edit = edit
        self.query = torch.nn.Linear(3, 4)
        self.key = torch.nn.Linear(3, 4)

    def forward(self, x):
        if self.edit == "order":
            key = self.key(x)
            query = self.query(x)
        else:
            query = self.query(x)
            key = self.key(x)
        hidden = torch.relu(query) if self.edit == "saved" else query
        if self.edit == "hook":
            hidden.register_hook(lambda grad: grad)
        return (hidden * key).sum()


def step(edit="", *, size=2):
    Net(edit)(torch.ones(size, 3)).backward()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ("order", "turn on cpu"),
        ("saved", "+ Net/ReluBackward0 float32[2,4] saved=32"),
        ("hook", "hooks nothing -> tensor_pre:Net.forward.<locals>.<lambda>"),
    ],
)
def test_a_change_of_the_backward_fails_and_is_told(golden, edit, words):
    path = golden(step)

    assert_same_backward(path, step)
    assert words in failure(path, lambda: step(edit))


def test_another_batch_changes_shapes_and_saved_bytes(golden):
    message = failure(golden(step), lambda: step(size=5))

    assert "inputs float32[2,4] -> float32[5,4]" in message
    assert "saved bytes 24 -> 60" in message


OPS = (
    lambda one, other: one * other,
    lambda one, other: one + other,
    lambda one, other: (one @ other.T) @ other,
    lambda one, other: torch.cat([one, other])[:2],
    lambda one, _: one.sin(),
    lambda one, _: one.relu(),
)


def random_program(seed):
    def program():
        rng = random.Random(seed)
        some = [torch.ones(2, 3, requires_grad=True) for _ in range(3)]
        for _ in range(30):
            some.append(rng.choice(OPS)(rng.choice(some), rng.choice(some)))
            if rng.random() < 0.2:
                some[-1].register_hook(lambda grad: grad * 2)
        torch.stack([x.sum() for x in some[-6:]]).sum().backward()

    return program


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs_have_equal_records_in_two_runs(golden, seed):
    texts = {golden(random_program(seed)).read_text() for _ in range(2)}

    assert len(texts) == 1
    assert parse_golden(texts.pop(), "x")


def test_passes_of_threads_are_in_an_order_that_no_race_decides(golden):
    def work(size):
        torch.ones(size, requires_grad=True).sin().sum().backward()

    def program():
        sizes = (3, 1, 2, 1)
        threads = [threading.Thread(target=work, args=(size,)) for size in sizes]
        for one in threads:
            one.start()
        work(9)
        for one in threads:
            one.join()

    path = golden(program)

    assert_same_backward(path, program)
    assert "pass x2 on-another-thread" in path.read_text()


def test_a_transformer_of_two_hundred_nodes_takes_less_than_30_kb(golden):
    def program():
        layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        model = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        model(torch.ones(2, 7, 32)).sum().backward()

    text = golden(program).read_text()

    assert text.count("\n") > 200
    assert len(text) < 30_000


def test_a_reentrant_checkpoint_is_a_pass_inside_of_its_node(golden):
    from torch.utils.checkpoint import checkpoint

    def program():
        layer = torch.nn.Linear(3, 3)
        x = torch.ones(2, 3, requires_grad=True)
        checkpoint(layer, x, use_reentrant=True).sum().backward()

    path = golden(program)

    assert_same_backward(path, program)
    assert "pass inside=/CheckpointFunctionBackward" in path.read_text()
