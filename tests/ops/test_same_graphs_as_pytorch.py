"""The same expressions make the same graphs, values and gradients as in PyTorch.

What PyTorch 2.13 makes of them is in ``graphs_of_pytorch.json``. To write it again, run
this file with a Python that has PyTorch and pytest.
"""

import json
import math
from pathlib import Path

import pytest

GOLDEN = Path(__file__).with_name("graphs_of_pytorch.json")

EXPRESSIONS = """
x+1
1+x
x+y
x+v
v+x
x-1
1-x
x-y
x*2
2*x
x*v
x*x
x/2
2/p
1/p
x/y
v/p
-x
abs(x)
x**2
x**3.0
p**0.5
p**y
p**s
2**x
x**0
x.sin()
x.cos()
x.tan()
x.exp()
p.log()
p.sqrt()
x.tanh()
x.sigmoid()
x.relu()
x.square()
p.reciprocal()
p.log1p()
x.expm1()
x.sign()
x.sum()
x.sum(0)
x.sum(1,keepdim=True)
x.sum((0,1))
x.sum(-1)
s.sum()
x.mean()
x.mean(0)
x.mean(-1,keepdim=True)
b.mean((0,2))
x.max()
x.max(0)
x.max(1,keepdim=True)
x.min()
x.min(-1)
gv.max(x,y)
gv.maximum(x,x)
gv.minimum(x,y)
x.amax()
x.amax(0)
x.amin(1)
x.relu().max()
x.relu().amax(1)
x.reshape(4,3)
x.view(12)
x.reshape(-1)
x.flatten()
x.t().reshape(-1)
x.t().flatten()
x.T.contiguous()
b.flatten(1)
b.flatten(0,1)
v.flatten()
s.flatten()
s.reshape(1)
x.T
x.t()
v.t()
b.mT
b.transpose(0,1)
b.transpose(-1,0)
b.permute(2,0,1)
x.unsqueeze(0)
x.unsqueeze(-1)
x[None]
x.unsqueeze(0).squeeze(0)
x.squeeze(0)
x.unsqueeze(0).squeeze()
x.unsqueeze(0).squeeze((0,1))
x.expand(2,3,4)
v.expand(3,4)
v.expand(3,-1)
v.expand_as(x)
gv.cat([x,y])
gv.cat([x,y,x],1)
gv.stack([x,y])
gv.stack([x,y],1)
gv.stack([x,y],-1)
gv.where(x>0,x,y)
gv.where(x>0,x,0.)
gv.where(x>0,v,s)
x.clamp(0,1)
x.clamp(min=0)
x[1]
x[-1]
x[:,0]
x[1:]
x[0,1]
x[:,1:3]
x[1:,1]
x[...,0]
x[...,None]
x[:,None]
x[i]
x[i,1]
x[:,i]
x[i,i]
x[m]
x[x>0]
x[1:,i]
x[::2]
x[:]
x[:,:]
x[0:]
x[0:3]
x[...]
x[None,1]
x[gv.tensor(1)]
x[0][1]
b[0,:,1]
b[:,i]
b[0,i]
b[:,i,1]
b[:,:,i]
x[[0,1]]
x[[0,0,1]]
b[...,i]
b[:,m]
b[1,...,2]
b[None,0,None]
x.softmax(1)
x.softmax(0)
x.log_softmax(1)
x.log_softmax(-1)
F.cross_entropy(x,tg)
F.cross_entropy(x,tg,reduction='sum')
F.cross_entropy(x,tg,reduction='none')
F.cross_entropy(x,tg,ignore_index=1)
F.cross_entropy(x,tg,weight=p[0].detach())
F.cross_entropy(v,gv.tensor(1))
F.nll_loss(x,tg)
F.mse_loss(x,y)
F.mse_loss(x,y,reduction='sum')
F.mse_loss(x,y,reduction='none')
x@w.T
x@v
v@v
b@b2
b@w.T
v@b2
b@v
x@x.T
v@w.T
x@b2
b2.mT@x.T
x.detach()@b2
b.transpose(0,1)@v
b.permute(1,0,2)@w.detach().T
b.permute(1,0,2)@w.T
gv.mm(x,w.t())
gv.dot(v,v)
gv.mv(x,v)
gv.bmm(b,b2)
F.linear(x,w)
F.linear(x,w,bias)
F.linear(v,w,bias)
F.linear(b,w,bias)
F.linear(b,w)
F.linear(v,w)
F.linear(b.permute(1,0,2),w,bias)
gv.addmm(bias,x,w.t())
x@w.T+bias
b2.unsqueeze(0)@c4
gv.outer(v,v)
x.clone()
x.double()
x.to(gv.float32)
x.float().double()
x.contiguous()
(x*y).relu().sum()+x.mean()
((x@w.T).tanh().sum(1)*p.sum(1)).log_softmax(0)
x*x.sum()+x.sin()*x.cos()
(x+y).detach()*x
x*gv.tensor(2.0)
s*x+s
x%p
p.log_softmax(0)
gv.where(m[:,None],x,y)
x*2-y/3
(x-x.mean()).square().mean()
x.relu().relu()
(x@w.T+bias).relu()@w
b.reshape(6,4)[i]
x[:,:2].reshape(-1)
b.transpose(0,1).flatten()
x.mT@x
F.cross_entropy(x@w.T+bias,tg)
x.sum()*y.sum()
x.T@y@v
b[:,:,:2].reshape(6,2)
x.expand(5,3,4).reshape(5,12)
(x*2).sum()*(x*3).sum()
F.linear(F.linear(x,w,bias).relu(),w.T)
""".strip().splitlines()


def numbers(lib, shape, start, *, positive=False):
    """Numbers that look random and are the same everywhere."""
    values = [
        math.sin(1.7 * i + start) * 1.3 + start / 10 for i in range(math.prod(shape))
    ]
    values = [abs(one) + 0.3 for one in values] if positive else values
    return lib.tensor(values, dtype=lib.float64).reshape(shape).clone()


def inputs(lib):
    shapes = {
        "x": (3, 4), "y": (3, 4), "v": (4,), "w": (5, 4), "s": (), "b": (2, 3, 4),
        "b2": (2, 4, 5), "c4": (3, 1, 5, 2), "bias": (5,),
    }  # fmt: skip
    leaves = {
        name: numbers(lib, shape, start / 2)
        for start, (name, shape) in enumerate(shapes.items())
    }
    leaves["p"] = numbers(lib, (3, 4), 6, positive=True)
    for leaf in leaves.values():
        leaf.requires_grad_()
    constants = {
        "i": lib.tensor([0, 2]),
        "m": lib.tensor([True, False, True]),
        "tg": lib.tensor([0, 1, 2]),
    }
    return leaves, constants


def measure(lib, functional, expression):
    """Return an expression's graph, value and gradients."""
    leaves, constants = inputs(lib)
    names = {"gv": lib, "F": functional, **leaves, **constants}
    result = eval(expression, names)
    result = result[0] if isinstance(result, tuple) else result
    weights = numbers(lib, tuple(result.shape), 0.3)
    measured = {
        "shape": list(result.shape),
        "value": (result.detach().to(lib.float64) * weights).sum().item(),
        "graph": describe(result.grad_fn),
        "forward": [name(node) for node in in_order_of_creation(result.grad_fn)],
    }
    result.backward(weights.to(result.dtype))
    measured["gradients"] = {
        name: (leaf.grad * numbers(lib, tuple(leaf.shape), 0.7)).sum().item()
        for name, leaf in sorted(leaves.items())
        if leaf.grad is not None
    }
    return measured


def describe(node):
    if node is None:
        return "None"
    inner = ", ".join(describe(next_node) for next_node in next_nodes(node))
    return f"{name(node)}({inner})" if inner else name(node)


def in_order_of_creation(root):
    found, waiting = set(), [root]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting.extend(next_nodes(node))
    return sorted(
        (node for node in found if name(node) != "AccumulateGrad"), key=sequence_nr
    )


def name(node):
    text = node.name()
    return text.removeprefix("torch::autograd::")


def next_nodes(node):
    edges = node.next_functions if hasattr(node, "next_functions") else node.next_edges
    return [edge[0] for edge in edges]


def sequence_nr(node):
    return node._sequence_nr() if hasattr(node, "_sequence_nr") else node.sequence_nr


def golden():
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_makes_the_graph_and_numbers_that_pytorch_makes(expression):
    import gradviz as gv

    expected = golden()[expression]
    measured = measure(gv, gv, expression)

    assert measured["graph"] == expected["graph"]
    assert measured["forward"] == expected["forward"]
    assert measured["shape"] == expected["shape"]
    assert measured["value"] == pytest.approx(expected["value"], rel=1e-6)
    assert measured["gradients"] == pytest.approx(expected["gradients"], rel=1e-6)


def write_golden():
    import torch

    measured = {
        expression: measure(torch, torch.nn.functional, expression)
        for expression in EXPRESSIONS
    }
    lines = [f"{json.dumps(key)}: {json.dumps(one)}" for key, one in measured.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write_golden()
