"""Building a described graph in a world, running its passes, and noting everything."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.parity.graphs import Flaw, Graph, Hook, Kind, Pass, Step
from tests.parity.worlds import World

#: Keeps gradients small; exact on floats that are integers.
MODULUS = 97

_FLAWED = {
    Flaw.WRONG_SHAPE: ([1.0, 2.0, 3.0], "float64"),
    Flaw.BROADCAST: ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "float64"),
    Flaw.OTHER_DTYPE: ([1.0, 2.0], "float32"),
    Flaw.COMPLEX: ([1.0, 2.0], "complex128"),
}


@dataclass
class Outcome:
    """Observations of a run, without any object of its world.

    Attributes:
        structure: For each step's node, the names of those it leads to.
        creation: The steps in order of the sequence numbers of their nodes.
        log: What user code saw, in order: who, in which pass, which gradients.
        endings: How each pass ended: its results or its error.
        grads: Every ``.grad`` after each pass, and which are still the same object.
        kept: What user code has held on to, as it is at the end.
    """

    structure: list[Any] = field(default_factory=list)
    creation: list[str] = field(default_factory=list)
    log: list[tuple[Any, ...]] = field(default_factory=list)
    endings: list[Any] = field(default_factory=list)
    grads: list[Any] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Foreseen:
    """The order that the engine foresaw for a pass, when the pass had just begun.

    Attributes:
        task: The pass, by the world's own number.
        num_roots: Its roots.
        labels: The nodes, by label.
        nodes: The nodes themselves.
    """

    task: int
    num_roots: int
    labels: list[str]
    nodes: Sequence[Any]


def run(world: World, graph: Graph) -> tuple[Outcome, dict[int, Foreseen]]:
    """Build `graph` and run its passes.

    Returns:
        What happened, and for each pass, counted from the first, what was foreseen.
    """
    observer = _Observer(world)
    built = _Built(observer, graph, (), "")
    outcome = observer.outcome
    outcome.structure = [
        [(world.name(child), nr) for child, nr in world.children(node) if child]
        for node in built.step_nodes
    ]
    created = sorted(built.step_nodes, key=world.sequence_nr)
    outcome.creation = [observer.labels[node] for node in created]
    for one in graph.passes:
        before = built.grads()
        try:
            outcome.endings.append(built.call(one))
        except (RuntimeError, TypeError, ValueError) as error:
            # How PyTorch calls its types of tensors is no business of gradviz's.
            message = str(error).partition(" (was ")[0]
            outcome.endings.append((type(error), message))
        after = built.grads()
        pairs = zip(before, after, strict=True)
        outcome.grads.append(list(map(world.numbers, after)))
        outcome.grads.append([old is not None and old is new for old, new in pairs])
    outcome.kept = list(map(world.numbers, observer.kept))
    return outcome, observer.foreseen


class _Observer:
    """Writes down what happens, for a graph and those inside it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.outcome = Outcome()
        self.kept: list[Any] = []
        self.foreseen: dict[int, Foreseen] = {}
        self.labels: dict[Any, str] = {}
        self.num_roots = 0
        self._first_task: int | None = None

    def note(self, what: str, *details: Any) -> None:
        """Log an event, with the pass it belongs to and its gradient mode."""
        is_recording = self.world.lib.is_grad_enabled()
        self.outcome.log.append((what, self._task(), is_recording, *details))

    def foresee(self) -> None:
        """Ask for the order of the current pass, if this is its first event."""
        task = self._task()
        if task in self.foreseen:
            return
        try:
            nodes = self.world.order()
        except RuntimeError:
            nodes = ()  # PyTorch does not know any more once a node has run
        labels = [self.labels.get(node, "unused leaf") for node in nodes]
        self.foreseen[task] = Foreseen(self.world.task(), self.num_roots, labels, nodes)

    def _task(self) -> int:
        task = self.world.task()
        if self._first_task is None:
            self._first_task = task
        return task - self._first_task


class _Built:
    """A graph in a world."""

    def __init__(
        self, observer: _Observer, graph: Graph, leaves: Sequence[Any], prefix: str
    ) -> None:
        self.observer = observer
        self.world = world = observer.world
        self.graph = graph
        self.prefix = prefix
        self.values = list(leaves[: graph.borrowed])
        self.values += [
            world.tensor([0.0, 0.0], requires_grad=wanted)
            for wanted in graph.leaves[graph.borrowed :]
        ]
        self.step_nodes: list[Any] = []
        value_labels = [f"{prefix}leaf {i}" for i in range(len(graph.leaves))]
        for index, step in enumerate(graph.steps):
            label = f"{prefix}step {index}"
            inputs = [self.values[i] for i in step.inputs]
            backward = self._backward_of(step, label)
            outputs = world.step(backward, step.num_outputs, inputs)
            self.step_nodes.append(world.node(outputs[0]))
            self.values += outputs
            value_labels += [label] * step.num_outputs
        # A leaf that no step uses has no node yet, and asking for it would make one.
        used = {i for step in graph.steps for i in step.inputs}
        self.nodes = {
            i: world.node(value)
            for i, value in enumerate(self.values)
            if value.requires_grad and (i in used or not value.is_leaf)
        }
        for i, node in self.nodes.items():
            observer.labels.setdefault(node, value_labels[i])
        for number, hook in enumerate(graph.hooks):
            self._register(hook, f"{prefix}hook {number}")
        if graph.watches_leaves:
            for i, node in self.nodes.items():
                if self.values[i].is_leaf:
                    world.before(node, self._noting(value_labels[i]))

    def call(self, one: Pass) -> Any:
        """Run a pass; returns the numbers of what it returns."""
        world, autograd = self.world, self.world.lib.autograd
        num_roots = self.observer.num_roots = len(one.roots)
        gradients = [world.tensor([i + 1.0, 2.0 * i + 3.0]) for i in range(num_roots)]
        self.observer.kept += gradients
        roots = [self.values[i] for i in one.roots]
        inputs = None if one.inputs is None else [self.values[i] for i in one.inputs]
        if not one.is_grad:
            autograd.backward(
                roots,
                gradients,
                retain_graph=True,
                create_graph=one.create_graph,
                inputs=inputs,
            )
            return None
        results = autograd.grad(
            roots,
            inputs,
            gradients,
            retain_graph=True,
            create_graph=one.create_graph,
            allow_unused=one.allow_unused,
        )
        self.observer.kept += results
        return list(map(world.numbers, results))

    def grads(self) -> list[Any]:
        """The ``.grad`` of every tensor that may have one."""
        return [
            value.grad if value.is_leaf or value.retains_grad else None
            for value in self.values
        ]

    def _note(self, what: str, *gradients: Any) -> None:
        self.observer.note(what, *map(self.world.numbers, gradients))
        self.observer.foresee()

    def _noting(self, what: str) -> Callable[[Sequence[Any]], None]:
        return lambda gradients: self._note(what, *gradients)

    def _backward_of(
        self, step: Step, label: str
    ) -> Callable[[Sequence[Any]], Sequence[Any]]:
        world = self.world

        def backward(grads: Sequence[Any]) -> Sequence[Any]:
            self._note(label, *grads)
            self.observer.note("checkpoint", world.is_checkpoint_valid())
            if step.keeps:
                self.observer.kept += grads
            for number in range(step.callbacks):
                name = f"{label} callback {number}"
                world.queue_callback(lambda name=name: self._note(name))
            if step.inner is not None:
                self._descend(step.inner, label)
            if step.flaw is Flaw.RAISES:
                raise ValueError(f"{label} failed")
            results = [_weighted(row, grads) for row in step.weights]
            if step.flaw is not None:
                results[0] = world.array(*_FLAWED[step.flaw])
            return tuple(results)

        return backward

    def _descend(self, graph: Graph, label: str) -> None:
        """A backward inside a backward."""
        with self.world.lib.enable_grad():
            leaves = self.values[: len(self.graph.leaves)]
            wanted = [leaf for leaf in leaves if leaf.requires_grad]
            inner = _Built(self.observer, graph, wanted, f"{label} / ")
            for one in graph.passes:
                self.observer.note(f"{label} calls")
                self.observer.note(f"{label} called", inner.call(one))
            grads = map(self.world.numbers, inner.grads())
            self.observer.note(f"{label} has", *grads)

    def _register(self, hook: Hook, label: str) -> None:
        tensor, node = self.values[hook.value], self.nodes.get(hook.value)
        match hook.kind:
            case Kind.TENSOR:
                tensor.register_hook(self._tensor_hook(hook, label))
            case Kind.RETAIN:
                tensor.retain_grad()
            case Kind.BEFORE if node is not None:
                self.world.before(node, self._node_hook(hook, label))
            case Kind.AFTER if node is not None:
                self.world.after(node, self._node_hook(hook, label))
            case Kind.ACCUMULATED:
                self.world.after_accumulation(tensor, self._leaf_hook(hook, label))

    def _tensor_hook(self, hook: Hook, label: str) -> Callable[[Any], Any]:
        def call(gradient: Any) -> Any:
            self._note(label, gradient)
            return self._hooked(hook, label, gradient)

        return call

    def _node_hook(self, hook: Hook, label: str) -> Callable[..., Any]:
        """A hook that may change the first gradient of the first sequence it is given.

        Before a node there is one sequence; after it, what it returned and was given.
        """

        def call(gradients: Sequence[Any], *others: Sequence[Any]) -> Any:
            self._note(label, *gradients, *itertools.chain(*others))
            if not gradients or (hook.flaw is None and hook.factor is None):
                return None
            first, *rest = gradients
            return (self._hooked(hook, label, first), *rest)

        return call

    def _leaf_hook(self, hook: Hook, label: str) -> Callable[[Any], None]:
        def call(leaf: Any) -> None:
            self._note(label, leaf.grad)
            if hook.flaw is Flaw.RAISES:
                raise ValueError(f"{label} failed")

        return call

    def _hooked(self, hook: Hook, label: str, gradient: Any) -> Any:
        """Return a hook's result for a gradient."""
        if hook.flaw is Flaw.RAISES:
            raise ValueError(f"{label} failed")
        if hook.flaw is not None:
            return self.world.array(*_FLAWED[hook.flaw])
        if hook.factor is None or gradient is None:
            return gradient
        return gradient * hook.factor % MODULUS


def _weighted(weights: Sequence[int] | None, grads: Sequence[Any]) -> Any:
    """The gradient of one input; a gradient itself where that is enough."""
    if weights is None:
        return None
    terms = [
        (weight, grad)
        for weight, grad in zip(weights, grads, strict=True)
        if grad is not None
    ]
    if not terms:
        return None
    if len(terms) == 1 and terms[0][0] == 1:
        return terms[0][1]
    return sum(grad * weight for weight, grad in terms) % MODULUS
