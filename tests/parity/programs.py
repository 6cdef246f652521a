"""Random programs over tensors: the same ops, written alike for both libraries.

Every value is a 3 x 3 matrix in C order, so any op can follow any other; what has
another shape or layout on its way is made such a matrix again within one op. (Of two
layouts PyTorch gives a sum that of its first operand, and NumPy C order.)
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

#: Takes the library and matrices, returns a matrix.
Op = Callable[..., Any]

#: Of these gradients are integers, and therefore exact, as long as they are small.
LINEAR: Final[Mapping[str, Op]] = {
    "add": lambda lib, x, y: x + y,
    "sub": lambda lib, x, y: x - y,
    "neg": lambda lib, x: -x,
    "add number": lambda lib, x: 1.0 + x + 2,
    "number minus": lambda lib, x: 3.0 - x,
    "times number": lambda lib, x: x * 2.0,
    "add in place": lambda lib, x, y: x.clone().add_(y),
    "clone": lambda lib, x: x.clone(),
    "same": lambda lib, x: x,
    "transposed": lambda lib, x: x.T.contiguous(),
    "t": lambda lib, x: (x.t() + x.t()).contiguous(),
    "transpose": lambda lib, x: x.transpose(0, 1).contiguous(),
    "permute": lambda lib, x: x.permute(1, 0).contiguous(),
    "reshape": lambda lib, x: x.reshape(9).reshape(3, 3),
    "reshape a copy": lambda lib, x: x.T.reshape(9).reshape(3, 3),
    "view": lambda lib, x: x.view(1, 9).view(3, -1),
    "flatten": lambda lib, x: x.flatten().view(3, 3),
    "squeeze": lambda lib, x: x.unsqueeze(1).squeeze(1),
    "row": lambda lib, x, y: x[1] + y,
    "column": lambda lib, x, y: x[:, 2] + y,
    "part": lambda lib, x, y: x[1:, :2].sum() + y,
    "element": lambda lib, x, y: x[0, -1] + y,
    "ellipsis": lambda lib, x, y: x[..., 0] - y,
    "new axis": lambda lib, x, y: x[0, None] + y[:, 1, None],
    "gather": lambda lib, x: x[lib.tensor([2, 0, 0])],
    "gather elements": lambda lib, x, y: x[[0, 1, 2], [2, 2, 0]] + y,
    "mask": lambda lib, x, y: x[lib.eye(3) > 0] + y,
    "cat": lambda lib, x, y: lib.cat([x, y])[1:4],
    "cat columns": lambda lib, x, y: lib.cat([x, y, x], dim=1)[:, 3:6].contiguous(),
    "stack": lambda lib, x, y: lib.stack([x, y, x]).sum(dim=0),
    "expand": lambda lib, x: x[2].expand(3, 3).contiguous(),
    "sum": lambda lib, x, y: x.sum() + y,
    "sum of rows": lambda lib, x, y: x.sum(dim=1, keepdim=True) + y,
    "sum of columns": lambda lib, x, y: x.sum(0) + y,
    "detached": lambda lib, x, y: x.detach() + y,
    "relu": lambda lib, x: lib.relu(x),
}

#: With these gradients are floats like any other.
SMOOTH: Final[Mapping[str, Op]] = {
    "mul": lambda lib, x, y: (x * y).tanh(),
    "mul in place": lambda lib, x, y: x.clone().mul_(y).tanh(),
    "matmul": lambda lib, x, y: (x @ y).tanh(),
    "mm": lambda lib, x, y: x.mm(y).sin(),
    "vector": lambda lib, x, y: x @ y[0] + y,
    "dot": lambda lib, x, y: (x[0].dot(y[1]) + x).tanh(),
    "mv": lambda lib, x, y: x.mv(y[:, 0]).tanh() - y,
    "outer": lambda lib, x, y: lib.outer(x[0], y[0]).tanh(),
    "addmm": lambda lib, x, y: lib.addmm(x, x, y).tanh(),
    "div": lambda lib, x, y: (x / (y * y + 1.0)).tanh(),
    "number over": lambda lib, x: 1.0 / (x * x + 1.0),
    "square": lambda lib, x: (x**2).tanh(),
    "cube": lambda lib, x: x.tanh() ** 3,
    "power": lambda lib, x, y: (x * x + 1.0) ** y.tanh(),
    "exp": lambda lib, x: x.tanh().exp(),
    "log": lambda lib, x: (x * x + 1.0).log(),
    "sqrt": lambda lib, x: (x.abs() + 1.0).sqrt(),
    "sin": lambda lib, x: x.sin(),
    "cos": lambda lib, x: x.cos(),
    "sigmoid": lambda lib, x: x.sigmoid(),
    "softmax": lambda lib, x: x.softmax(dim=1),
    "log softmax": lambda lib, x: x.log_softmax(dim=0).tanh(),
    "mean": lambda lib, x, y: x.mean() - y,
    "mean of rows": lambda lib, x, y: x.mean(dim=1) + y,
    "max": lambda lib, x, y: x.max() + y,
    "max of rows": lambda lib, x, y: x.max(dim=1).values + y,
    "min of columns": lambda lib, x, y: x.min(0)[0] + y,
    "maximum": lambda lib, x, y: lib.maximum(x, y),
    "where": lambda lib, x, y: lib.where(x > 0, x, y),
    "clamp": lambda lib, x: x.clamp(-0.5, 0.5),
}


@dataclass(frozen=True)
class Program:
    """A computation and its requests; values are numbered, leaves first.

    Attributes:
        leaves: For each its elements, and whether it requires a gradient.
        ops: Name of each op, with the values it takes.
        is_exact: Whether all gradients are integers.
        hooked: Values with a hook, and the number that it multiplies gradients by.
        retained: Values that retain their gradients.
        inputs: What to ask gradients of; None for a backward to all leaves.
        is_grad: Whether by ``grad`` and not by ``backward``.
        is_repeated: Whether to go through the same graph once more.
    """

    leaves: tuple[tuple[tuple[float, ...], bool], ...]
    ops: tuple[tuple[str, tuple[int, ...]], ...]
    is_exact: bool
    hooked: tuple[tuple[int, float], ...]
    retained: tuple[int, ...]
    inputs: tuple[int, ...] | None
    is_grad: bool
    is_repeated: bool


def random_program(seed: int) -> Program:
    """The program of a seed, forever the same."""
    rng = random.Random(seed)
    is_exact = rng.random() < 0.5
    table = LINEAR if is_exact else {**LINEAR, **SMOOTH}
    num_leaves = rng.randint(1, 4)
    num_ops = rng.randint(1, 20)
    num_values = num_leaves + num_ops
    ops = []
    for index in range(num_ops):
        name = rng.choice(list(table))
        known = range(num_leaves + index)
        arity = table[name].__code__.co_argcount - 1
        ops.append(
            (
                name,
                tuple(rng.choice((known[-1], rng.choice(known))) for _ in range(arity)),
            )
        )
    is_grad = rng.random() < 0.3
    asks = is_grad or rng.random() < 0.2
    return Program(
        leaves=tuple(
            (
                tuple(float(rng.randint(-3, 3)) for _ in range(9)),
                index == 0 or rng.random() < 0.8,
            )
            for index in range(num_leaves)
        ),
        ops=tuple(ops),
        is_exact=is_exact,
        hooked=tuple(
            (rng.randrange(num_values), rng.choice((1.0, 2.0, -1.0)))
            for _ in range(rng.choice((0, 1, 3)))
        ),
        retained=tuple(rng.randrange(num_values) for _ in range(rng.choice((0, 0, 2)))),
        inputs=tuple(rng.randrange(num_values) for _ in range(rng.randint(1, 3)))
        if asks
        else None,
        is_grad=is_grad,
        is_repeated=rng.random() < 0.3,
    )
