"""A page of ordinary user code, none of which a type checker may object to."""

from typing import assert_type

import numpy as np

import gradviz as gv
from gradviz import nn, optim
from gradviz.nn import functional as F
from gradviz.tensors.attributes.size import Size
from gradviz.trace.format.model import Trace
from gradviz.utils.data import DataLoader, TensorDataset


class Perceptron(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(64, width)
        self.norm = nn.BatchNorm1d(width)
        self.rest = nn.Sequential(nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 10))

    def forward(self, x: gv.Tensor, *, scale: float = 1.0) -> gv.Tensor:
        x = self.norm(self.hidden(x)) * scale
        assert_type(self.hidden(x), gv.Tensor)
        return self.rest(x)


def makes_tensors() -> None:
    assert_type(gv.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), gv.Tensor)
    assert_type(gv.tensor(np.ones(3), dtype=gv.float64), gv.Tensor)
    assert_type(gv.tensor(3), gv.Tensor)
    assert_type(gv.zeros(2, 3), gv.Tensor)
    assert_type(gv.zeros((2, 3), dtype=gv.int64, device="cpu"), gv.Tensor)
    assert_type(gv.ones(gv.zeros(2, 3).shape), gv.Tensor)
    assert_type(gv.randn(4, 4, generator=gv.Generator()), gv.Tensor)
    assert_type(gv.arange(0, 10, 2), gv.Tensor)
    assert_type(gv.randint(0, 10, (3,)), gv.Tensor)
    assert_type(gv.from_numpy(np.ones(3)), gv.Tensor)
    assert_type(gv.full((2,), 1.5), gv.Tensor)
    assert_type(gv.Tensor(2, 3), gv.Tensor)
    assert_type(gv.LongTensor([1, 2]), gv.Tensor)


def computes(x: gv.Tensor, y: gv.Tensor) -> None:
    assert_type(x * x, gv.Tensor)
    assert_type(2 * x + 1.5 - y / 3, gv.Tensor)
    assert_type(x**2 @ y.T, gv.Tensor)
    assert_type(-x, gv.Tensor)
    assert_type(x == y, gv.Tensor)
    assert_type((x > 0) & (y < 1), gv.Tensor)
    assert_type(x * np.float32(2), gv.Tensor)
    assert_type(gv.exp(x), gv.Tensor)
    assert_type(gv.exp(x, out=y), gv.Tensor)
    assert_type(gv.add(x, 2, alpha=3), gv.Tensor)
    assert_type(gv.maximum(x, y), gv.Tensor)
    assert_type(gv.where(x > 0, x, 0.0), gv.Tensor)
    assert_type(gv.where(x > 0), tuple[gv.Tensor, ...])
    assert_type(gv.cat([x, y], dim=1), gv.Tensor)
    assert_type(gv.stack((x, y)), gv.Tensor)
    assert_type(gv.einsum("ij,jk->ik", x, y), gv.Tensor)
    assert_type(gv.clamp(x, min=0.0, max=1), gv.Tensor)
    assert_type(x.clamp(0, 1), gv.Tensor)
    assert_type(x.masked_fill(x > 0, float("-inf")), gv.Tensor)
    assert_type(gv.linalg.inv(x), gv.Tensor)
    assert_type(gv.linalg.qr(x).Q, gv.Tensor)
    assert_type(gv.linalg.slogdet(x).logabsdet, gv.Tensor)
    assert_type(gv.special.expit(x), gv.Tensor)
    q, r = gv.linalg.qr(x)
    assert_type(q @ r, gv.Tensor)
    x += 1
    x *= y
    assert_type(x, gv.Tensor)
    assert_type(x.add_(y).mul_(2), gv.Tensor)


def reduces(x: gv.Tensor) -> None:
    assert_type(x.sum(), gv.Tensor)
    assert_type(x.sum(0), gv.Tensor)
    assert_type(x.sum(dim=(0, 1), keepdim=True), gv.Tensor)
    assert_type(x.sum(axis=0, keepdims=True), gv.Tensor)
    assert_type(x.mean(-1), gv.Tensor)
    assert_type(x.std(0, unbiased=False), gv.Tensor)
    assert_type(x.max(), gv.Tensor)
    assert_type(x.max(0).values, gv.Tensor)
    assert_type(x.max(dim=1, keepdim=True).indices, gv.Tensor)
    assert_type(gv.max(x, x), gv.Tensor)
    values, indices = x.sort(descending=True)
    assert_type(values[indices], gv.Tensor)
    assert_type(x.topk(3).values, gv.Tensor)
    assert_type(x.argmax(1), gv.Tensor)
    assert_type(x.cumsum(0), gv.Tensor)
    assert_type(x.norm(), gv.Tensor)
    assert_type(x.unique(), gv.Tensor)
    assert_type(x.nonzero(as_tuple=True), tuple[gv.Tensor, ...])
    assert_type((x > 0).any(), gv.Tensor)


def looks(x: gv.Tensor) -> None:
    assert_type(x.shape, Size)
    assert_type(x.shape[0], int)
    assert_type(x.size(), Size)
    assert_type(x.size(0), int)
    assert_type(x.item(), bool | int | float)
    assert_type(float(x), float)
    assert_type(x.ndim, int)
    assert_type(x.requires_grad, bool)
    assert_type(x.is_leaf, bool)
    assert_type(x.grad, gv.Tensor | None)
    assert_type(x.device, gv.Device)
    assert_type(x[0], gv.Tensor)
    assert_type(x[0, :, None, ..., 1:-1], gv.Tensor)
    assert_type(x[x > 0], gv.Tensor)
    assert_type(x[[0, 1], gv.tensor([0, 1])], gv.Tensor)
    x[0] = 1.0
    x[:, 1] = x[:, 0]
    assert_type(list(x), list[gv.Tensor])
    assert_type(x.numpy(), np.ndarray)
    assert_type(x.detach(), gv.Tensor)
    assert_type(x.data, gv.Tensor)
    assert_type(x.to("cpu", gv.float32), gv.Tensor)
    assert_type(x.to(dtype=gv.float64), gv.Tensor)
    assert_type(x.float(), gv.Tensor)
    assert_type(x.reshape(-1, 2), gv.Tensor)
    assert_type(x.view(x.shape[0], -1), gv.Tensor)
    assert_type(x.view(gv.int32), gv.Tensor)
    assert_type(x.new_tensor([1.0]), gv.Tensor)
    assert_type(x._version, int)
    assert_type(x.permute(1, 0), gv.Tensor)
    assert_type(x.transpose(0, 1).contiguous(), gv.Tensor)
    assert_type(x.flatten(1).unsqueeze(0).squeeze(0), gv.Tensor)
    assert_type(x.expand(3, -1).repeat(2, 1), gv.Tensor)
    assert_type(x.split(2), tuple[gv.Tensor, ...])
    assert_type(x.chunk(2, dim=1), tuple[gv.Tensor, ...])
    print(f"{x.item():.3f}", len(x), x)


def uses_functions(x: gv.Tensor, target: gv.Tensor, weight: gv.Tensor) -> None:
    assert_type(F.relu(x), gv.Tensor)
    assert_type(F.softmax(x, dim=-1), gv.Tensor)
    assert_type(F.cross_entropy(x, target), gv.Tensor)
    assert_type(F.mse_loss(x, target, reduction="sum"), gv.Tensor)
    assert_type(F.conv2d(x, weight, padding=1), gv.Tensor)
    assert_type(F.max_pool2d(x, 2), gv.Tensor)
    assert_type(F.max_pool2d(x, 2, return_indices=True), tuple[gv.Tensor, gv.Tensor])
    assert_type(F.dropout(x, 0.5, training=True), gv.Tensor)
    assert_type(F.linear(x, weight), gv.Tensor)
    assert_type(F.one_hot(target, 10), gv.Tensor)
    assert_type(F.pad(x, (1, 1)), gv.Tensor)
    assert_type(F.layer_norm(x, (4,)), gv.Tensor)


def differentiates(x: gv.Tensor, loss: gv.Tensor) -> None:
    loss.backward()
    loss.backward(gv.ones(()), retain_graph=True)
    gv.autograd.backward([loss], inputs=[x])
    (gradient,) = gv.autograd.grad(loss, [x], create_graph=True)
    assert_type(gradient, gv.Tensor)
    handle = x.register_hook(lambda grad: grad * 2)
    handle.remove()
    with gv.no_grad():
        x -= 0.1
    with gv.set_grad_enabled(False), gv.autograd.detect_anomaly():
        pass
    if x.grad is not None:
        assert_type(x.grad * 2, gv.Tensor)
        x.grad.zero_()
    x.grad = None
    assert_type(gv.is_grad_enabled(), bool)


class Square(gv.autograd.Function):
    @staticmethod
    def forward(ctx: gv.autograd.function.FunctionCtx, x: gv.Tensor) -> gv.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: gv.autograd.function.FunctionCtx, grad: gv.Tensor) -> gv.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


@gv.no_grad()
def evaluates(model: Perceptron, x: gv.Tensor) -> float:
    model.eval()
    return float((model(x).argmax(1) == 0).float().mean())


def trains(batches: list[tuple[gv.Tensor, gv.Tensor]]) -> None:
    gv.manual_seed(0)
    model = Perceptron(32).train()
    assert_type(model, Perceptron)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=10)
    criterion = nn.CrossEntropyLoss()
    for x, target in batches:
        optimizer.zero_grad()
        output = model(x, scale=2.0)
        assert_type(output, gv.Tensor)
        loss = criterion(output, target)
        assert_type(loss, gv.Tensor)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        print(loss.item())
    for parameter in model.parameters():
        assert_type(parameter, nn.Parameter)
        assert_type(parameter.grad, gv.Tensor | None)
        assert_type(parameter * 2, gv.Tensor)
    output, (last, memory) = nn.LSTM(64, 8)(batches[0][0])
    assert_type(output * last * memory, gv.Tensor)
    assert_type(optimizer.step(lambda: 3.0), float)
    samples = TensorDataset(*batches[0])
    assert_type(samples[0], tuple[gv.Tensor, ...])
    for x, target in DataLoader(samples, batch_size=2, shuffle=True):
        print(x.shape, target.shape)
    model.load_state_dict(model.state_dict())
    gv.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.99)).step()
    squared: gv.Tensor = Square.apply(gv.ones(2))
    print(squared)
    assert_type(evaluates(model, gv.ones(1, 64)), float)


def records(loss: gv.Tensor) -> None:
    with gv.record("backward.gvt", force=True) as recording:
        loss.backward()
    assert_type(recording.trace, Trace)
    assert_type(gv.load_trace("backward.gvt"), Trace)
