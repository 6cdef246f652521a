"""Random programs over devices and streams, which are right: every wait is there.

A program is a value. It can be run on the CPU, where nothing is asynchronous and the
gradients are what they must be, and on simulated devices with streams. All numbers are
small integers, so that the two agree exactly, in whatever order sums are made.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

import gradviz as gv
from gradviz.backends.device import Device
from gradviz.tensors.tensor import Tensor
from tests.parity.programs import LINEAR

MAX_DEVICES: Final = 4
MAX_STREAMS: Final = 3

#: Where something is done: the index of a simulated device, -1 for the CPU, and which
#: of the program's streams there, of which 0 is the default one.
Place = tuple[int, int]


class Step(NamedTuple):
    """One op, or one of the `SPECIAL` ones.

    Attributes:
        op: Its name.
        inputs: Which values it takes: leaves first, then the results of steps.
        place: Where. Inputs that are elsewhere are copied, or waited for.
        hook: What to hang on the result: a key of `HOOKS`, or nothing.
    """

    op: str
    inputs: tuple[int, ...]
    place: Place
    hook: str = ""


class Program(NamedTuple):
    """A forward pass, and how its gradients are asked for.

    Attributes:
        leaves: Where each leaf is made.
        steps: In order.
        outputs: The values of which the sum is the loss.
        loss: Where the loss is computed.
        caller: The streams that are current during `backward`, of each device.
        passes: How often backward is run; the gradients add up.
        captured: The values whose gradients are returned; if there are none, those of
            leaves are put into ``.grad``.
        seeded: Whether backward begins at the outputs themselves, with gradients that
            the caller gives, instead of at the loss.
        called_back: Whether a final callback looks at what there is then.
    """

    leaves: tuple[Place, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    loss: Place
    caller: tuple[int, ...]
    passes: int
    captured: tuple[int, ...]
    seeded: bool
    called_back: bool


def random_program(seed: int) -> Program:
    """The program of that seed."""
    rng = random.Random(seed)
    num_devices = rng.choice((1, 1, 2, 3, MAX_DEVICES))
    num_streams = rng.randint(1, MAX_STREAMS)

    def place() -> Place:
        device = (
            rng.randrange(-1, num_devices)
            if rng.random() < 0.2
            else (rng.randrange(num_devices))
        )
        return device, 0 if device < 0 else rng.randrange(num_streams)

    leaves = tuple(place() for _ in range(rng.randint(1, 4)))
    steps: list[Step] = []
    for number in range(rng.randint(3, 14)):
        op = rng.choice(rng.choices(FAMILIES, (2, 2, 5))[0])
        known = len(leaves) + number
        # What is recent is likelier, so that programs are deep as well as wide.
        inputs = tuple(
            rng.randrange(max(0, known - 5) if rng.random() < 0.6 else 0, known)
            for _ in range(arity(op))
        )
        hook = rng.choice(sorted(HOOKS)) if rng.random() < 0.25 else ""
        steps.append(Step(op, inputs, place(), hook))
    num_values = len(leaves) + len(steps)
    return Program(
        leaves,
        tuple(steps),
        outputs=(num_values - 1, *rng.sample(range(num_values), rng.randint(0, 2))),
        loss=place(),
        caller=tuple(rng.randrange(num_streams) for _ in range(MAX_DEVICES)),
        passes=rng.choice((1, 2)),
        captured=(
            tuple(rng.sample(range(num_values), rng.randint(1, 3)))
            if rng.random() < 0.2
            else ()
        ),
        seeded=rng.random() < 0.3,
        called_back=rng.random() < 0.3,
    )


class World:
    """Devices of a program's run: simulated ones, or the CPU for all.

    Attributes:
        is_simulated: Which of the two.
    """

    def __init__(self, *, is_simulated: bool) -> None:
        self.is_simulated = is_simulated
        self._streams: dict[Place, gv.Stream] = {}

    def device(self, place: Place) -> Device:
        """Of a place."""
        if place[0] < 0 or not self.is_simulated:
            return gv.device("cpu")
        return gv.device(f"sim:{place[0]}")

    def stream(self, place: Place) -> gv.Stream | None:
        """Of a place; the CPU has none."""
        device = self.device(place)
        if device.type == "cpu":
            return None
        if place not in self._streams:
            self._streams[place] = (
                gv.Stream(device) if place[1] else gv.default_stream(device)
            )
        return self._streams[place]

    @contextmanager
    def at(self, *places: Place) -> Iterator[None]:
        """Work on the streams of these places, at most one of each device."""
        with ExitStack() as stack:
            for place in places:
                if (stream := self.stream(place)) is not None:
                    stack.enter_context(stream)
            yield

    def wait(self, place: Place, other: Place) -> None:
        """Have the stream of `place` wait for that of `other`."""
        waiter, waited = self.stream(place), self.stream(other)
        if waiter is not None and waited is not None and waiter != waited:
            waiter.wait_stream(waited)

    def bring(self, value: Tensor, came_from: Place, place: Place) -> Tensor:
        """`value` where `place` can use it, its work in the right order."""
        self.wait(place, came_from)
        if (stream := self.stream(place)) is not None:
            if self.device(came_from) == self.device(place):
                value.record_stream(stream)
            elif self.stream(came_from) is not None:
                value.record_stream(self.stream(came_from))
        places = (place,) if came_from[0] == place[0] else (came_from, place)
        with self.at(*places):
            return value.to(self.device(place))

    def side(self, value: Tensor, name: str) -> "gv.Stream | None":
        """A stream of `value`'s device that nothing else of the program uses."""
        if not self.is_simulated or value.device.type == "cpu":
            return None
        key = (value.device.index, hash(name) % 7 + MAX_STREAMS)
        if key not in self._streams:
            self._streams[key] = gv.Stream(value.device)
        return self._streams[key]


def run(program: Program, world: World) -> list[np.ndarray | None]:
    """Forward and backward; all gradients, and what a callback saw of them."""
    values: list[tuple[Tensor, Place]] = []
    for number, place in enumerate(program.leaves):
        entries = np.arange(9.0).reshape(3, 3) % (number + 2) - 1
        with world.at(place):
            leaf = gv.tensor(entries, device=world.device(place), requires_grad=True)
        values.append((leaf, place))
    leaves = [leaf for leaf, _ in values]
    for step in program.steps:
        inputs = [world.bring(*values[index], step.place) for index in step.inputs]
        with world.at(step.place):
            result = (SPECIAL.get(step.op) or plain(step.op))(world, *inputs)
        if step.hook and result.requires_grad:
            result.register_hook(HOOKS[step.hook](world))
        values.append((result, step.place))
    outputs = [values[index] for index in program.outputs]
    if not program.seeded:
        terms = [world.bring(*output, program.loss) for output in outputs]
        with world.at(program.loss):
            outputs = [(sum(terms[1:], terms[0]).sum(), program.loss)]
    wanted = leaves
    if program.captured:
        wanted = [values[index][0] for index in program.captured]
        wanted = [value for value in wanted if value.requires_grad] or leaves
    return ask(program, world, outputs, wanted)


def ask(
    program: Program,
    world: World,
    outputs: list[tuple[Tensor, Place]],
    inputs: list[Tensor],
) -> list[np.ndarray | None]:
    """The gradients of `inputs`, asked for and read on the caller's streams."""
    roots = [root for root, _ in outputs if root.requires_grad]
    if not roots:
        return []
    caller = tuple(enumerate(program.caller))
    found: list[Tensor | None] = []
    seen: list[np.ndarray | None] = []

    def look() -> None:
        seen.extend(map(read, (one.grad for one in inputs if one.is_leaf)))

    if program.called_back:
        roots[0].register_hook(
            lambda grad: gv.autograd.Variable._execution_engine.queue_callback(look)
        )
    with world.at(*caller):
        for number in range(program.passes):
            keeps = number + 1 < program.passes
            seeds = [root.new_full(root.shape, 2.0) for root in roots]
            if program.captured:
                found += gv.autograd.grad(
                    roots, inputs, seeds, retain_graph=keeps, allow_unused=True
                )
                continue
            gv.autograd.backward(roots, seeds, retain_graph=keeps)
            found = [leaf.grad for leaf in inputs]
            for grad in found:
                if grad is not None:  # as an optimizer's step would
                    grad.mul_(2.0)
        return [*map(read, found), *seen]


def read(tensor: Tensor | None) -> np.ndarray | None:
    """Return the data of a tensor, once the current stream has come so far."""
    return None if tensor is None else tensor.detach().cpu().numpy().copy()


# --- ops ------------------------------------------------------------------------


def plain(name: str) -> Callable[..., Tensor]:
    """An op of the random programs without streams."""
    op = LINEAR[name]
    return lambda world, *inputs: op(gv, *inputs)


class SideStream(gv.autograd.Function):
    """Twice its input, computed on a stream of its own both ways, with all waits."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, world: World) -> Tensor:
        ctx.world = world
        return _aside(world, x, "forward", lambda: x * 2.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return _aside(ctx.world, grad, "backward", lambda: grad * 2.0), None


class Reentrant(gv.autograd.Function):
    """Its input and twice that, by a backward inside of the backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 3.0

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        with gv.enable_grad():
            inner = grad.detach().requires_grad_()
            (inner * 3.0).sum().backward()
        assert inner.grad is not None
        return inner.grad * grad


class Unused(gv.autograd.Function):
    """The first of its inputs; the second gets no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return grad, None


def _aside(world: World, x: Tensor, name: str, compute: Callable[[], Tensor]) -> Tensor:
    """Compute on a side stream, which waits for the current one and is waited for."""
    side = world.side(x, name)
    if side is None:
        return compute()
    outer = gv.current_stream(x.device)
    side.wait_stream(outer)
    x.record_stream(side)
    with side:
        result = compute()
    outer.wait_stream(side)
    result.record_stream(outer)
    return result


def _shared(world: World, x: Tensor, y: Tensor) -> Tensor:
    """A sum of which two streams get the same gradient; `y` gets another one later."""
    twice = y * 2.0
    negated = _aside(world, x, "shared", lambda: -x)
    return (negated + y) + twice


#: Ops that are about streams.
SPECIAL: Final[Mapping[str, Callable[..., Tensor]]] = {
    "side stream": lambda world, x: SideStream.apply(x, world),
    "reentrant": lambda world, x: Reentrant.apply(x.sign()),
    "unused": lambda world, x, y: Unused.apply(x, y),
    "shared": _shared,
    "to the host and back": lambda world, x: x.cpu().to(x.device) + x,
}

#: Of a world, a hook for a tensor, which is called with None where no gradient came.
HOOKS: Final[Mapping[str, Callable[[World], Callable[[Tensor], Tensor | None]]]] = {
    "looks": lambda world: lambda grad: None,
    "negates": lambda world: lambda grad: None if grad is None else -grad,
    "negates aside": lambda world: (
        lambda grad: (
            None if grad is None else _aside(world, grad, "hook", lambda: -grad)
        )
    ),
}

_ARITY: Final = {
    name: op.__code__.co_argcount - 1 for name, op in {**LINEAR, **SPECIAL}.items()
}
#: Not "same": a hook of its result would be one of its input, or of a copy of that.
FAMILIES: Final = (
    sorted(set(LINEAR) - {"same"}),
    sorted(SPECIAL),
    ("add", "sub"),  # whose gradient goes to two nodes without being copied
)


def arity(op: str) -> int:
    """Return the number of tensors that an op takes."""
    return _ARITY[op]
