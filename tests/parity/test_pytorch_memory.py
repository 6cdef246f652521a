"""Memory of PyTorch's backward passes, byte for byte what the program itself says."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import gradviz as gv
from gradviz.analysis.memory.allocations import HoldingKind, holdings
from gradviz.analysis.memory.memory_use import build_memory
from gradviz.trace import events as e
from gradviz.trace.probe import How
from tests.parity.pytorch_recordings import faults, leaf, of_kind, recorded

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def held(recording: Any, kind: HoldingKind) -> int:
    """The bytes of all that was held for something."""
    found = holdings(recording.trace)
    return int(found.size_bytes[found.kind == kind].sum())


def storages_of(
    program: Callable[[], Any], leaves: list[Any]
) -> tuple[dict[int, int], Any]:
    """The storages that hooks of the program's own see saved, and its result."""
    found: dict[int, int] = {}
    kept = []

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        found[storage._cdata] = storage.nbytes()
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = program()
    for one in leaves:
        found.pop(one.untyped_storage()._cdata, None)
    return found, result


def convolutions() -> Any:
    nn = torch.nn
    first = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    return nn.Sequential(*first, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5))


def tied() -> Any:
    one = torch.nn.Linear(6, 6)
    return torch.nn.Sequential(one, torch.nn.GELU(), one, torch.nn.Softmax(-1))


MODELS: list[Any] = [
    (convolutions, (2, 3, 8, 8)),
    (tied, (4, 6)),
    (lambda: torch.nn.LSTM(4, 8, 2), (5, 2, 4)),
    (lambda: torch.nn.GRUCell(4, 8), (2, 4)),
    (lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), (3, 2, 8)),
    (lambda: torch.nn.MultiheadAttention(8, 2), None),
    (lambda: torch.nn.Bilinear(3, 4, 5), None),
]


def call(model: Any, shape: tuple[int, ...] | None) -> Any:
    if isinstance(model, torch.nn.Bilinear):
        return model(torch.ones(2, 3), torch.ones(2, 4))
    if shape is None:
        x = torch.ones(3, 2, 8)
        return model(x, x[:2], x[:2])[0]
    out = model(torch.ones(shape))
    return out[0] if isinstance(out, tuple) else out


@pytest.mark.parametrize(("make", "shape"), MODELS)
def test_saved_tensors_and_gradients_are_those_of_the_program(make, shape):
    torch.manual_seed(0)
    model = make()
    parameters = [*model.parameters()]
    leaves = [*parameters, *model.buffers()]
    expected, _ = storages_of(lambda: call(model, shape).square().sum(), leaves)
    loss = call(model, shape).square().sum()

    recording = recorded(loss.backward)

    assert held(recording, HoldingKind.SAVED) == sum(expected.values())
    gradients = [one.grad for one in parameters if one.grad is not None]
    assert held(recording, HoldingKind.GRADIENT) == sum(one.nbytes for one in gradients)
    assert not faults(recording)
    memory = build_memory(recording.trace, [*recording.trace.tasks])
    assert memory.num_unknown == 0


def test_no_unpack_hook_is_called_and_what_was_packed_counts():
    unpacked: list[Any] = []

    def program() -> None:
        x = leaf(100)
        with torch.autograd.graph.saved_tensors_hooks(
            lambda one: one.half(), lambda one: (unpacked.append(one), one.float())[1]
        ):
            y = x.sin().exp()
        loss = y.sum()
        with gv.pytorch.record() as recording:
            torch.autograd.grad(loss, x, retain_graph=True)
            recordings.append((recording, len(unpacked)))
        torch.autograd.grad(loss, x)

    recordings: list[Any] = []
    program()
    ((recording, calls),) = recordings
    assert calls == 2  # those of the pass
    assert held(recording, HoldingKind.SAVED) == 2 * 200


def test_numbers_views_and_leaves_count_for_nothing_and_a_storage_once():
    x, w = leaf(10, 10), leaf(10, 10)
    y = x.exp()

    def program() -> None:
        loss = (y * 0.5).sum() + (y[0] * y[1]).sum() + (x @ w).sum()
        loss.backward()

    assert held(recorded(program), HoldingKind.SAVED) == y.nbytes


def test_views_of_frozen_parameters_count_for_nothing():
    frozen = torch.nn.Linear(4, 4).requires_grad_(False)

    # `linear` saves a transposed view of its weight.
    recording = recorded(lambda: frozen(leaf(2, 4)).sum().backward())

    assert held(recording, HoldingKind.SAVED) == 0


def test_saved_tensors_are_let_go_as_their_node_ends_but_in_passes_that_keep_them():
    def program() -> None:
        y = leaf(10).exp().sum()
        y.backward(retain_graph=True)
        y.backward()

    recording = recorded(program)
    found = holdings(recording.trace)
    (end,) = found.end[found.kind == HoldingKind.SAVED]
    (begun,) = [one.seq for one in of_kind(recording, e.TaskBegun)][1:]
    assert end > begun


def test_of_grad_it_is_said_whether_it_was_there_before():
    x, w = leaf(), leaf()

    def program() -> None:
        (x * 2).sum().backward()
        (x * w).sum().backward()
        (x * w).sum().backward(create_graph=True)
        x.grad = None
        x.sum().backward()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of create_graph, the first time in a process
        recording = recorded(program)
    how = [one.how for one in of_kind(recording, e.GradientAccumulated)]
    assert how == [
        How.UNKNOWN,
        *sorted((How.IN_PLACE, How.UNKNOWN), reverse=how[1] == How.UNKNOWN),
        *(How.OUT_OF_PLACE, How.OUT_OF_PLACE),
        How.UNKNOWN,
    ]


def test_a_parameter_has_one_grad_in_all_steps():
    model = torch.nn.Linear(8, 8)

    def program() -> None:
        for _ in range(3):
            model(torch.ones(2, 8)).sum().backward()

    recording = recorded(program)

    memory = build_memory(recording.trace, [[*recording.trace.tasks][-1]])
    gradients = sum(one.grad.nbytes for one in model.parameters())
    assert memory.begin.gradients == memory.end.gradients == gradients
    assert memory.end.unclaimed == 0
    assert held(recording, HoldingKind.GRADIENT) == gradients


def test_tensors_without_a_storage_are_passed_over():
    i = torch.tensor([[0, 1], [1, 0]])
    sparse = torch.sparse_coo_tensor(i, torch.ones(2), (2, 2), check_invariants=True)

    recording = recorded(lambda: torch.sparse.mm(sparse, leaf(2, 2)).sum().backward())

    assert not faults(recording)


def test_a_graph_that_outlives_a_recording_is_counted_in_the_next_one_too():
    loss = leaf(100).exp().sin().exp().sum()

    first = recorded(lambda: loss.backward(retain_graph=True))
    second = recorded(lambda: loss.backward(retain_graph=True))
    third = recorded(loss.backward)

    sizes = [held(one, HoldingKind.SAVED) for one in (first, second, third)]
    assert sizes == [800, 800, 800]


def test_memory_that_a_pass_has_released_is_not_counted_in_the_next_recording():
    y = leaf(100).exp()
    (y * 2).sum().backward()

    def program() -> None:
        with pytest.raises(RuntimeError, match="second time"):
            y.sin().sum().backward()

    recording = recorded(program)

    # sin() has saved the tensor that exp() has released.
    assert [one.size_bytes for one in of_kind(recording, e.TensorSaved)] == [400]


def test_two_recordings_at_once_are_each_told_once():
    loss = leaf(100).exp().sin().exp().sum()

    with gv.pytorch.record() as outer:
        loss.backward(retain_graph=True)
        inner = recorded(lambda: loss.backward(retain_graph=True))
        loss.backward()

    assert held(inner, HoldingKind.SAVED) == held(outer, HoldingKind.SAVED) == 800
    assert len(of_kind(outer, e.TensorSaved)) == 2


def test_a_later_graph_shares_what_an_earlier_one_has_saved():
    trunk = leaf(10).exp().view(2, 5)

    def program() -> None:
        trunk.sin().sum().backward(retain_graph=True)
        trunk.cos().sum().backward()

    recording = recorded(program)

    assert held(recording, HoldingKind.SAVED) == 40
    shared = [one.shared_bytes for one in of_kind(recording, e.SavedElsewhere)]
    assert shared == [40, 40]


def test_memory_of_parameters_and_of_views_is_told_apart():
    x, w = leaf(10, 10).exp(), leaf(10, 10)

    loss = (x[0] * x[1]).sum() + (x @ w.t()).sum()
    recording = recorded(loss.backward)

    assert held(recording, HoldingKind.SAVED) == 400
    saved = build_memory(recording.trace, [*recording.trace.tasks]).saved
    assert saved is not None
    assert (saved.size_bytes, saved.parameter_bytes) == (400, 400)
    assert saved.shared_bytes == 40 + 40 + 400


class Rotated(torch.nn.Module):
    """Saves views of its buffer, and of one that is replaced at each call."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4, affine=False)
        self.register_buffer("angles", torch.rand(10, 4))
        self.register_buffer("scale", torch.ones(4), persistent=False)

    def forward(self, x: Any) -> Any:
        self.scale = self.scale + 1
        return self.norm(x) * self.angles[: len(x)] * self.scale


def test_buffers_of_modules_are_held_anyway_and_other_inputs_are_not():
    model, x, weights = Rotated(), leaf(3, 4), torch.rand(3, 4)

    def program() -> None:
        (model(x) * weights).sum().backward()

    recording = recorded(program)

    saved = build_memory(recording.trace, [*recording.trace.tasks]).saved
    assert saved is not None
    statistics = [model.norm.running_mean, model.norm.running_var]
    buffers = [*statistics, model.angles, model.scale]
    assert saved.parameter_bytes == x.nbytes + sum(one.nbytes for one in buffers)
    # Of BatchNorm the mean and deviation of the batch, of products the weights.
    assert saved.size_bytes == 2 * 4 * 4 + weights.nbytes


def test_the_inputs_of_a_checkpoint_that_is_not_reentrant_are_counted_once():
    nn = torch.nn
    first, inner = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Tanh())
    kept: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        kept[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
        return tensor

    def model(x: Any) -> Any:
        mask = torch.ones(2, 4)
        return torch.utils.checkpoint.checkpoint(
            lambda a, b, scale: inner(a) * b * scale,
            *(first(x), mask, 2.0),
            use_reentrant=False,
        )

    x = torch.rand(2, 4)
    recording = recorded(lambda: model(x).sum().backward())
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda one: one):
        loss = model(x).sum()
    del loss

    saved = build_memory(recording.trace, [*recording.trace.tasks]).saved
    assert saved is not None
    # Of the forward: x by the first layer, and what the checkpoint was called with.
    outside = x.nbytes + 2 * (2 * 4 * 4)
    assert outside == sum(kept.values())
    by_op = {one.name: one.size_bytes for one in saved.by_op}
    # Computed again: the results of both Tanh, and of the product with the mask.
    assert saved.size_bytes == outside, by_op
    assert saved.num_unknown == 0


class Kept:
    """An object of the program's, which may hold anything."""


def test_of_what_pack_hooks_return_tensors_count_and_other_objects_are_unknown():
    def sizes(packed: Callable[[Any], Any]) -> list[int]:
        kept: list[Any] = []

        def pack(tensor: Any) -> Any:
            kept.append(tensor)
            return packed(tensor)

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda _: kept[0]):
            loss = leaf(100).exp().sum()
        return [
            one.size_bytes for one in of_kind(recorded(loss.backward), e.TensorSaved)
        ]

    assert sizes(lambda one: ("cpu", [one.half()])) == [200]
    assert sizes(lambda _: "a path") == []
    assert sizes(lambda _: Kept()) == [None]


def test_a_saved_value_that_cannot_be_asked_for_counts_as_unknown():
    x = leaf(4) * 1
    x[1:].mul_(3)

    recording = recorded(x.sum().backward)

    memory = build_memory(recording.trace, [*recording.trace.tasks])
    assert memory.num_unknown == 1
    assert not faults(recording)


def test_parts_of_sparse_and_nested_tensors_count():
    i = torch.tensor([[0, 1], [1, 0]])
    sparse = torch.sparse_coo_tensor(i, torch.ones(2), (2, 2), check_invariants=True)

    recording = recorded(lambda: torch.sparse.mm(sparse, leaf(2, 2)).sum().backward())

    assert held(recording, HoldingKind.SAVED) == i.nbytes + 2 * 4


class Scaled(torch.autograd.Function):
    """Saves what it is given, and what it returns."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, y = ctx.saved_tensors
        return grad * (y / x)


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.out((q @ k.transpose(-2, -1)).softmax(-1) @ v)


class UNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.down, self.middle = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 1)
        self.up, self.out = nn.ConvTranspose2d(4, 4, 2, 2), nn.Conv2d(8, 1, 1)

    def forward(self, x: Any) -> Any:
        skip = self.down(x).relu()
        inner = self.middle(torch.nn.functional.max_pool2d(skip, 2)).relu()
        return self.out(torch.cat([skip, self.up(inner)], 1))


class Checkpointed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.first = nn.Linear(6, 6)
        self.block = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))

    def forward(self, x: Any) -> Any:
        x = self.first(x).tanh()
        again = torch.utils.checkpoint.checkpoint
        return again(self.block, x, use_reentrant=False).exp()


class Custom(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        return Scaled.apply(self.linear(x)).sin()


class Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = torch.nn.LSTMCell(4, 6)

    def forward(self, x: Any) -> Any:
        state = None
        for one in x:
            state = self.cell(one, state)
        return state[0]


def perceptron() -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 3))


def normalized() -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.LayerNorm(8), nn.GELU())


class Penalized(torch.nn.Module):
    """Its result is made of a gradient: the pass through it is a second one."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 6)
        self.scale = torch.nn.Parameter(torch.ones(6))

    def forward(self, x: Any) -> Any:
        x = x * self.scale
        y = self.linear(x).tanh().exp().sum()
        (grad,) = torch.autograd.grad(y, x, create_graph=True)
        return grad.square() + y


TEN: list[Any] = [
    (perceptron, (4, 6)),
    (convolutions, (2, 3, 8, 8)),
    (Attention, (2, 5, 8)),
    (Recurrent, (5, 2, 4)),
    (UNet, (2, 1, 8, 8)),
    (Checkpointed, (4, 6)),
    (Custom, (4, 6)),
    (tied, (4, 6)),
    (Penalized, (4, 6)),
    (normalized, (4, 6)),
]


@pytest.mark.parametrize(("make", "shape"), TEN)
def test_every_byte_that_ten_models_save_is_where_their_own_hooks_see_it(make, shape):
    torch.manual_seed(0)
    model, x = make(), torch.rand(shape) + 1
    loss = model(x).square().sum()
    seen, kept = storages_of(lambda: model(x).square().sum(), [])
    held = (*model.parameters(), *model.buffers())
    held_anyway = {one.untyped_storage()._cdata for one in held}

    recording = recorded(loss.backward)

    saved = build_memory(recording.trace, [*recording.trace.tasks]).saved

    assert saved is not None
    assert kept is not None
    own = [size for one, size in seen.items() if one not in held_anyway]
    others = [size for one, size in seen.items() if one in held_anyway]
    assert (saved.size_bytes, saved.parameter_bytes) == (sum(own), sum(others))
    assert saved.num_unknown == 0
    for shares in (saved.by_op, saved.by_module, saved.by_line):
        assert sum(one.size_bytes for one in shares) == sum(own)
        assert [one.size_bytes for one in shares] == sorted(
            (one.size_bytes for one in shares), reverse=True
        )
    assert not faults(recording)
