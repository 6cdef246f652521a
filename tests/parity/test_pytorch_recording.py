"""PyTorch's own passes as they are recorded, against what PyTorch itself shows."""

import random
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

import gradviz as gv
from gradviz.analysis.changes.pass_comparison import compare
from gradviz.analysis.findings.check import check_trace
from gradviz.capture.session import Recording, record
from gradviz.errors import UserError
from gradviz.pytorch.nodes.graph_reader import ID_KEY
from gradviz.trace import events as e
from gradviz.trace.probe import NO_LINES, Probe, installed
from gradviz.trace.reading.reader import load_trace
from tests.campaigns import IS_FULL
from tests.parity.graphs import random_graph
from tests.parity.pytorch_recordings import (
    faults,
    gradviz_run,
    leaf,
    new_python,
    of_kind,
    python,
    recorded,
)
from tests.parity.running import run
from tests.parity.worlds import TORCH
from tests.sampled import sampled

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore:Using backward"),
]

CHUNK = 50
NUM_GRAPHS = 300
NUM_STRESS_GRAPHS = 3_000 if IS_FULL else 1_300

#: What is said of a leaf where the tasks that a failed hook left are not known.
AFTER_A_HOOK = "an earlier pass failed in a hook"

_Found = TypeVar("_Found")


@pytest.fixture(scope="module", autouse=True)
def warned_once() -> None:
    """Use up the warnings that both libraries give once in a process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for lib in (torch, gv):
            lib.ones(1, requires_grad=True).sin().backward(create_graph=True)


def nodes_below(tensors: list[Any]) -> list[Any]:
    found, pending = {}, [one.grad_fn for one in tensors]
    while pending:
        node = pending.pop()
        if node is not None and node not in found:
            found[node] = True
            pending += [after for after, _ in node.next_functions]
    return list(found)


# --- the order ------------------------------------------------------------------------


def changed_in_place(one: Any, other: Any) -> Any:
    values = one * 1
    values[1:].mul_(other[:2])
    return values


def random_program(rng: random.Random) -> list[Any]:
    """Tensors, of PyTorch's own operations, the last of which are outputs."""
    values = [leaf() for _ in range(rng.randint(1, 6))]
    for _ in range(rng.randint(1, 40)):
        one, other = rng.choice(values), rng.choice(values)
        make = rng.choice(
            [
                lambda a, b: a * b,
                lambda a, b: a + b,
                lambda a, b: a.sin(),
                lambda a, b: a.detach() * b,
                lambda a, b: torch.stack([a, b]).sum(0),
                lambda a, b: (a * b).expand(2, 3).unbind(0)[1],
                changed_in_place,
            ]
        )
        values.append(make(one, other))
    return values


def compare_with_hooks(seed: int) -> None:
    rng = random.Random(seed)
    values = random_program(rng)
    made = [value for value in values if value.grad_fn is not None]
    outputs = rng.sample(made, min(len(made), rng.randint(1, 4)))
    wanted = [value for value in values if value.requires_grad]
    inputs = rng.sample(wanted, min(len(wanted), rng.randint(1, 3)))
    order: list[Any] = []
    for node in nodes_below(outputs):
        node.register_prehook(lambda grads, node=node: order.append(node))
    ones = [torch.ones_like(output) for output in outputs]
    calls = [
        lambda: torch.autograd.backward(outputs, ones),
        lambda: torch.autograd.backward(outputs, ones, inputs=inputs),
        lambda: torch.autograd.grad(outputs, inputs, ones, allow_unused=True),
    ]

    recording = recorded(rng.choice(calls))

    nodes = recording.trace.nodes
    started = [
        event.node
        for event in of_kind(recording, e.NodeStarted)
        if not event.inferred and nodes[event.node].name != "GraphRoot"
    ]
    assert started == [node.metadata[ID_KEY] for node in order], f"seed {seed}"
    assert faults(recording) == [], f"seed {seed}"


def compare_with_unwatched(seed: int) -> int:
    """Custom Functions, hooks, inner passes, failures: as `random_graph` makes them.

    Returns:
        How many leaves may have been other ones, after a pass that failed in a hook.
    """
    graph = random_graph(seed)
    unwatched, _ = run(TORCH, graph)
    with gv.pytorch.record() as recording:
        watched, _ = run(TORCH, graph)

    assert watched == unwatched, f"seed {seed}"
    found = faults(recording)
    errors = [event.error for event in of_kind(recording, e.TaskFailed)]
    doubts = [one for one in found if AFTER_A_HOOK in one]
    assert len(doubts) == len(found), f"seed {seed}: {found}"
    assert not doubts or any("hook" in error for error in errors), f"seed {seed}"
    return len(doubts)


def in_a_new_thread(call: Callable[..., _Found], *arguments: Any) -> _Found:
    """Call in a thread whose ready queue is empty.

    A pass that fails in a hook leaves tasks in the queue of its thread, and what can no
    longer be known of later passes there is recorded as unexplained.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call, *arguments).result()


@pytest.mark.parametrize("first", sampled(range(0, NUM_GRAPHS, CHUNK), 3))
def test_nodes_are_recorded_in_the_order_in_which_hooks_hear_them(first):
    for seed in range(first, first + CHUNK):
        in_a_new_thread(compare_with_hooks, seed)


@pytest.mark.parametrize("first", sampled(range(0, NUM_GRAPHS, CHUNK), 3))
def test_a_recorded_pass_does_what_it_does_unrecorded(first):
    seeds = range(first, first + CHUNK)
    assert sum(in_a_new_thread(compare_with_unwatched, seed) for seed in seeds) <= 1


@pytest.mark.stress
@pytest.mark.parametrize("first", range(NUM_GRAPHS, NUM_STRESS_GRAPHS, 10 * CHUNK))
def test_a_thousand_passes_are_recorded_as_they_are(first):
    num_doubts = 0
    for seed in range(first, min(first + 10 * CHUNK, NUM_STRESS_GRAPHS)):
        in_a_new_thread(compare_with_hooks, seed)
        num_doubts += in_a_new_thread(compare_with_unwatched, seed)
    assert num_doubts <= 2


def test_ours_runs_as_theirs_did():
    """A trace of PyTorch's beside one of the same program on gradviz."""

    def program(lib: Any) -> None:
        x = lib.ones(3, requires_grad=True)
        y = x * 2.0
        ((y + x).sin() * y).sum().backward()

    theirs = recorded(lambda: program(torch))
    with record() as ours:
        program(gv)

    tasks = [of_kind(one, e.TaskBegun)[0].task for one in (theirs, ours)]
    result = compare(theirs.trace, tasks[0], ours.trace, tasks[1])
    assert result.is_related
    assert result.num_matched == result.before.num_nodes == result.after.num_nodes
    assert (result.vanished, result.appeared, result.moved) == ((), (), ())


# --- models ---------------------------------------------------------------------------


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 5)
        self.tied = torch.nn.Linear(4, 5)
        self.tied.weight = self.first.weight

    def forward(self, x: Any) -> Any:
        return (self.first(x) + self.tied(x)).relu()


def test_nodes_are_of_the_module_that_made_them_and_leaves_have_names():
    net = Net()
    nodes = recorded(lambda: net(torch.ones(2, 4)).sum().backward()).trace.nodes

    by_name = {}
    for node in nodes.values():
        by_name.setdefault(node.name, []).append(node)
    model = by_name["ReluBackward0"][0].module
    assert model.startswith("Net")
    products = sorted(by_name["AddmmBackward0"], key=lambda node: node.module)
    assert [node.module for node in products] == [f"{model}.first", f"{model}.tied"]
    assert all(node.location.startswith(__file__) for node in products)
    names = {node.parameters for node in by_name["AccumulateGrad"]}
    assert (f"{model}.first.weight", f"{model}.tied.weight") in names
    (total,) = by_name["SumBackward0"]
    assert (total.module, total.inputs[0].shape) == ("", ())
    assert total.inputs[0].dtype == "float32"


def test_calls_of_modules_and_steps_of_optimizers_are_recorded():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step() -> None:
        net(torch.ones(2, 4)).sum().backward()
        optimizer.step()

    recording = recorded(step)
    begun = of_kind(recording, e.ForwardBegun, e.OptimizerBegun)
    assert [one.name for one in begun] == ["Net", "Linear", "Linear", "SGD"]
    ended = of_kind(recording, e.ForwardEnded, e.OptimizerEnded)
    assert [one.failed for one in ended] == [False] * 4


def test_a_module_that_raises_is_left():
    class Bad(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    def program() -> None:
        with pytest.raises(ValueError, match="no"):
            torch.nn.Sequential(Bad())(torch.ones(1))
        (leaf() * 2).sum().backward()

    recording = recorded(program)
    assert [one.failed for one in of_kind(recording, e.ForwardEnded)] == [True, True]
    assert {node.module for node in recording.trace.nodes.values()} == {""}


def test_anomaly_mode_tells_the_lines():
    def program() -> None:
        with torch.autograd.detect_anomaly(check_nan=False):
            leaf().sin().sum().backward()

    with pytest.warns(UserWarning, match="Anomaly"):
        recording = recorded(program)
    (sin,) = (one for one in recording.trace.nodes.values() if "Sin" in one.name)
    assert sin.location.startswith(__file__)


def test_a_node_keeps_its_id_from_pass_to_pass():
    x = leaf()
    y = (x * x).sum()

    def program() -> None:
        y.backward(retain_graph=True)
        y.backward()

    recording = recorded(program)
    started = of_kind(recording, e.NodeStarted)
    first, second = (
        [event.node for event in started if event.task == begun.task]
        for begun in of_kind(recording, e.TaskBegun)
    )
    assert first == second


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoints_are_recorded(use_reentrant):
    layers = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())] * 3

    def program() -> None:
        y = leaf(2, 4)
        for layer in layers:
            y = torch.utils.checkpoint.checkpoint(layer, y, use_reentrant=use_reentrant)
        y.sum().backward()

    recording = recorded(program)
    begun = of_kind(recording, e.TaskBegun)
    assert [one.reentrant_depth for one in begun] == [0] + [1] * 3 * use_reentrant
    assert faults(recording) == []


class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, depth: int) -> Any:
        ctx.depth = depth
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if ctx.depth:
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                inner = x.detach().requires_grad_()
                Nested.apply(inner, ctx.depth - 1).sum().backward()
        return grad * 2, None


def test_passes_that_go_to_the_pool_of_threads_are_recorded():
    recording = recorded(lambda: Nested.apply(leaf(), 70).sum().backward())

    assert len(of_kind(recording, e.TaskCompleted)) == 71
    assert len({one.thread for one in of_kind(recording, e.NodeStarted)}) == 2
    assert faults(recording) == []


def test_threads_that_run_passes_at_once_have_a_queue_each():
    barrier = threading.Barrier(4)

    def work() -> None:
        y = leaf()
        for _ in range(100):
            y = y.sin()
        barrier.wait()
        y.sum().backward()

    def program() -> None:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    recording = recorded(program)
    assert len({one.queue for one in of_kind(recording, e.TaskPushed)}) == 4
    called_by = {one.task: one.thread for one in of_kind(recording, e.TaskBegun)}
    assert len(set(called_by.values())) == 4
    started = of_kind(recording, e.NodeStarted)
    assert all(one.thread == called_by[one.task] for one in started)
    assert faults(recording) == []


def test_both_engines_in_one_program_are_in_one_trace():
    def program() -> None:
        (leaf() * 2).sum().backward()
        (gv.ones(3, requires_grad=True) * 2).sum().backward()

    recording = recorded(program)
    tasks = {one.task for one in of_kind(recording, e.TaskCompleted)}
    nodes = [one.node for one in of_kind(recording, e.NodeStarted)]
    assert len(tasks) == 2
    assert len(set(nodes)) == len(nodes) == 6
    assert faults(recording) == []


# --- what goes wrong ------------------------------------------------------------------


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        raise ValueError("no")


def failed(program: Callable[[], Any], error: type[Exception]) -> Recording:
    with gv.pytorch.record() as recording, pytest.raises(error):
        program()
    return recording


def test_the_node_that_raised_is_named():
    recording = failed(lambda: Failing.apply(leaf()).sum().backward(), ValueError)

    (ended,) = of_kind(recording, e.TaskFailed)
    assert recording.trace.nodes[ended.node].name == "FailingBackward"
    assert ended.error == "ValueError: no"
    assert faults(recording) == []


def test_a_node_of_a_freed_graph_is_named():
    y = (leaf() ** 2).sum()

    def program() -> None:
        y.backward()
        y.backward()

    recording = failed(program, RuntimeError)
    (ended,) = of_kind(recording, e.TaskFailed)
    assert recording.trace.nodes[ended.node].name == "PowBackward0"
    assert "a second time" in ended.error


def test_of_a_hook_that_raised_no_node_is_accused():
    def program() -> None:
        y = leaf().sin()
        y.register_hook(lambda grad: grad.no_such_attribute)
        y.sum().backward()

    recording = in_a_new_thread(failed, program, AttributeError)
    (ended,) = of_kind(recording, e.TaskFailed)
    assert ended.node == -1
    assert faults(recording) == []


def test_a_pass_that_never_begins_is_in_the_trace():
    recording = failed(lambda: torch.ones(()).backward(), RuntimeError)

    (ended,) = of_kind(recording, e.TaskFailed)
    assert "does not require grad" in ended.error
    assert faults(recording) == []


def test_a_pass_that_is_interrupted_is_in_the_trace():
    class Interrupted(Failing):
        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise KeyboardInterrupt

    recording = failed(
        lambda: Interrupted.apply(leaf()).sum().backward(),
        KeyboardInterrupt,  # type: ignore[arg-type]
    )
    (ended,) = of_kind(recording, e.TaskFailed)
    assert ended.error.startswith("KeyboardInterrupt")


def test_a_pass_that_is_interrupted_before_it_begins_leaves_nothing_behind():
    class Interrupts(Probe):
        __slots__ = ()

        def nodes_defined(self, nodes: Any, made_at: Any = NO_LINES) -> None:
            raise KeyboardInterrupt

    y = leaf().sin().sum()
    with gv.pytorch.record() as recording:
        with installed(Interrupts()), pytest.raises(KeyboardInterrupt):
            y.backward()
        y.backward()

    begun = of_kind(recording, e.TaskBegun)
    assert [one.reentrant_depth for one in begun] == [0]
    assert len(of_kind(recording, e.NodeStarted)) == 3
    assert faults(recording) == []


def test_beside_a_profiler_of_the_programs_nothing_is_seen_and_that_is_said():
    def program() -> None:
        with torch.profiler.profile() as profile:
            (leaf() * 2).sum().backward()
        assert any("MulBackward0" in one.name for one in profile.events())

    recording = recorded(program)
    (doubt,) = of_kind(recording, e.Unexplained)
    assert doubt.text == "another profiler runs, so none of its nodes could be seen"
    assert len(of_kind(recording, e.TaskCompleted)) == 1
    assert not check_trace(recording.trace).history.num_violations


def test_a_subclass_of_a_tensor_hears_nothing_of_it():
    class Heard(torch.Tensor):
        calls: list[str] = []  # noqa: RUF012 - of this test

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            cls.calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    def program() -> list[str]:
        x = torch.ones(3).as_subclass(Heard).requires_grad_()
        Heard.calls.clear()
        (x * x).sum().backward()
        torch.autograd.grad((x * 2).sum(), [x])
        return list(Heard.calls)

    with gv.pytorch.record() as recording:
        watched = program()
    assert watched == program()
    assert faults(recording) == []


@pytest.mark.parametrize(
    "program",
    [
        lambda: torch.func.grad(lambda x: (x * x).sum())(torch.ones(3)),
        lambda: torch.func.vmap(torch.func.grad(lambda x: x.sin().sum()))(leaf(2, 3)),
        lambda: torch.func.jacrev(lambda x: x * x)(torch.ones(3)),
        lambda: torch.autograd.functional.hessian(
            lambda x: (x**3).sum(), torch.ones(3)
        ),
        lambda: torch.autograd.gradcheck(
            torch.sin, [torch.ones(2, dtype=torch.float64, requires_grad=True)]
        ),
    ],
    ids=["grad", "vmap", "jacrev", "hessian", "gradcheck"],
)
def test_transforms_are_recorded(program):
    recording = recorded(program)

    assert of_kind(recording, e.TaskCompleted)
    assert faults(recording) == []


def test_after_a_recording_pytorch_is_as_it_was():
    modules = torch.autograd, torch.autograd.graph
    before = [one._engine_run_backward for one in modules]
    hooks = torch.nn.modules.module
    with gv.pytorch.record():
        assert [one._engine_run_backward for one in modules] != before

    assert [one._engine_run_backward for one in modules] == before
    assert not hooks._global_forward_pre_hooks
    assert not hooks._global_forward_hooks


def test_a_compiled_model_is_one_node_and_stays_compiled():
    net = torch.compile(Net(), backend="aot_eager", fullgraph=True)

    recording = recorded(lambda: net(torch.ones(2, 4)).sum().backward())

    names = {node.name for node in recording.trace.nodes.values()}
    assert "CompiledFunctionBackward" in names
    assert not any("Addmm" in name for name in names)
    assert faults(recording) == []


def test_a_source_that_there_is_not_is_refused():
    with pytest.raises(UserError, match="expected one of 'gradviz', 'torch'"):
        record(source="tensorflow")  # type: ignore[arg-type]


# --- drawing --------------------------------------------------------------------------


def test_the_graph_of_a_tensor_is_in_the_order_in_which_it_would_run():
    net = Net()
    loss = net(torch.ones(2, 4)).sum()
    graph = gv.pytorch.graph(loss, params=net.named_parameters())

    recording = recorded(loss.backward)
    started = [one.node for one in of_kind(recording, e.NodeStarted)]
    assert [node.id for node in graph.nodes] == started
    names = {name for node in graph.nodes for name in node.parameters}
    assert names == {name for name, _ in net.named_parameters()}
    assert gv.draw(graph).graph.num_nodes > 3


def test_there_is_no_graph_of_what_needs_no_gradient():
    with pytest.raises(UserError, match="there is no graph to draw"):
        gv.pytorch.graph(torch.ones(3))


# --- programs -------------------------------------------------------------------------


def test_a_program_that_imports_torch_is_recorded_unchanged(tmp_path):
    result = new_python(
        tmp_path,
        """
        import torch
        x = torch.ones(3, requires_grad=True)
        (x * 2).sum().backward()
        print(x.grad, torch.__loader__ is torch.__spec__.loader)
        """,
        *("-m", "gradviz", "run", "-o", "out.gvt"),
    )

    assert result.stdout == "tensor([2., 2., 2.]) True\n"
    assert "recorded 1 backward, 3 nodes" in result.stderr
    assert "USDT" not in result.stderr
    trace = load_trace(tmp_path / "out.gvt")
    names = [node.name for node in trace.nodes.values()]
    assert names == ["AccumulateGrad", "MulBackward0", "SumBackward0"]


def test_a_program_that_ends_at_once_leaves_what_was_known(tmp_path):
    result = gradviz_run(
        tmp_path,
        """
        import os, time, torch
        from gradviz.trace.reading.reader import load_trace
        class Ends(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1
            @staticmethod
            def backward(ctx, grad):
                deadline = time.monotonic() + 60
                written = load_trace("out.gvt")
                while len(written.nodes) < 4 or not written.tasks:
                    written = load_trace("out.gvt")
                    assert time.monotonic() < deadline
                os._exit(3)
        Ends.apply(torch.ones(3, requires_grad=True).sin()).sum().backward()
        """,
    )

    assert result.exit_code == 3
    trace = load_trace(tmp_path / "out.gvt")
    assert {node.name for node in trace.nodes.values()} >= {"SinBackward0"}
    assert any(isinstance(event, e.TaskBegun) for event in trace.events())


def test_recordings_begin_and_end_while_other_threads_run_passes(tmp_path):
    """PyTorch crashes if its profiler is started or stopped meanwhile."""
    result = python(
        tmp_path,
        """
        import threading, torch, gradviz as gv
        from gradviz.analysis.findings.check import check_trace
        def backward():
            y = torch.ones(4, requires_grad=True)
            for _ in range(50):
                y = y.sin()
            y.sum().backward()
        is_over = threading.Event()
        def work():
            while not is_over.is_set():
                backward()
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(40):
            with gv.pytorch.record() as recording:
                for _ in range(5):
                    backward()
            assert not check_trace(recording.trace).history.num_violations
            assert recording.counts.tasks >= 5
        is_over.set()
        for thread in threads:
            thread.join()
        with gv.pytorch.record() as recording:
            backward()
        print(check_trace(recording.trace).is_fine)
        """,
    )

    assert (result.exit_code, result.output) == (0, "True\n"), result.errors


def test_the_child_of_a_fork_goes_on_without_a_recording(tmp_path):
    result = python(
        tmp_path,
        """
        import os, torch, gradviz as gv
        def backward():
            (torch.ones(2, requires_grad=True) * 2).sum().backward()
        class Forks(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1
            @staticmethod
            def backward(ctx, grad):
                ctx.child = os.fork()
                with torch.enable_grad():
                    backward()
                if ctx.child:
                    print(os.waitstatus_to_exitcode(os.waitpid(ctx.child, 0)[1]))
                return grad
        before = os.getpid()
        with gv.pytorch.record() as recording:
            Forks.apply(torch.ones(2, requires_grad=True)).sum().backward()
            if os.getpid() != before:
                backward()
                os._exit(7)
        print(recording.counts[:2])
        """,
    )

    assert (result.exit_code, result.output) == (0, "7\n(2, 6)\n"), result.errors
