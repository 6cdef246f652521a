"""A page of user code with a mistake in each line that ignores an error.

A type checker that warns of an ignored error where there is none, as mypy does here,
finds each line in which it has become blind.
"""

import gradviz as gv
from gradviz import nn, optim
from gradviz.nn import functional as F


class Doubling(nn.Module):
    def forward(self, x: gv.Tensor) -> gv.Tensor:
        return x * 2


def mistakes(x: gv.Tensor, model: nn.Linear, trace: str) -> None:
    x.sum(dim="a")  # type: ignore[arg-type]
    x.nosuch  # type: ignore[attr-defined]
    x.nosuch()  # type: ignore[attr-defined]
    x.max(0).value  # type: ignore[attr-defined]
    x.reshape("a")  # type: ignore[arg-type]
    x.transpose(0)  # type: ignore[call-arg]
    x.backward(retain=True)  # type: ignore[call-arg]
    x.to(1.5)  # type: ignore[arg-type]
    x.shape = x.shape  # type: ignore[misc]
    x.item().nosuch  # type: ignore[union-attr]
    x.grad * 2  # type: ignore[operator]
    x.requires_grad = "yes"  # type: ignore[assignment]
    x["a"]  # type: ignore[index]
    x[0] = "a"  # type: ignore[assignment]
    x + "a"  # type: ignore[operator]
    x @ 2  # type: ignore[operator]
    x.add_("a")  # type: ignore[arg-type]
    gv.nosuch  # type: ignore[attr-defined]
    gv.exp("s")  # type: ignore[arg-type]
    gv.exp()  # type: ignore[call-arg]
    gv.exp(x, x)  # type: ignore[call-arg]
    gv.exp(x, out="s")  # type: ignore[arg-type]
    gv.add(x, y=2)  # type: ignore[call-arg]
    gv.add(x, "s")  # type: ignore[arg-type]
    gv.matmul(x, 2)  # type: ignore[arg-type]
    gv.cat(x, "s")  # type: ignore[arg-type]
    gv.zeros("a")  # type: ignore[arg-type]
    gv.zeros(2, dtyp=gv.float32)  # type: ignore[call-arg]
    gv.zeros(2, requires_grad="yes")  # type: ignore[arg-type]
    gv.tensor()  # type: ignore[call-arg]
    gv.linalg.inv()  # type: ignore[call-arg]
    gv.linalg.nosuch  # type: ignore[attr-defined]
    gv.manual_seed("a")  # type: ignore[arg-type]
    gv.record(3)  # type: ignore[arg-type]
    gv.load_trace()  # type: ignore[call-arg]
    gv.autograd.grad(x)  # type: ignore[call-overload]
    F.relu()  # type: ignore[call-arg]
    F.relu(3)  # type: ignore[arg-type]
    F.softmax(x, dim="a")  # type: ignore[arg-type]
    F.cross_entropy(x)  # type: ignore[call-arg]
    F.cross_entropy(x, x, reduction="average")  # type: ignore[arg-type]
    F.max_pool2d(x, 2, return_indices=True).sum()  # type: ignore[attr-defined]
    F.nosuch(x)  # type: ignore[attr-defined]
    nn.Linear(2)  # type: ignore[call-arg]
    nn.Linear("a", 2)  # type: ignore[arg-type]
    model("s")  # type: ignore[arg-type]
    model(x, x)  # type: ignore[call-arg]
    Doubling()(3)  # type: ignore[arg-type]
    Doubling()(x).nosuch  # type: ignore[attr-defined]
    optim.SGD(lr="x")  # type: ignore[call-arg, arg-type]
    optim.SGD(model.parameters(), lr="x")  # type: ignore[arg-type]
    optim.Adam(model.parameters(), beta=0.9)  # type: ignore[call-arg]
    optim.SGD(model.parameters(), lr=0.1).stepp()  # type: ignore[attr-defined]
    optim.lr_scheduler.StepLR(model, 10)  # type: ignore[arg-type]
