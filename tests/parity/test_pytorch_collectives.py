"""Collectives of data-parallel programs of PyTorch, in two processes over gloo.

The oracle of buckets is a communication hook of the same model, run unrecorded.
"""

import json

import pytest

from gradviz.analysis.findings.check import check_trace
from gradviz.trace import events as e
from gradviz.trace.reading.reader import load_trace
from tests.warm_python import WITH_PYTORCH, run_warm

torch = pytest.importorskip("torch")
if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    pytest.skip("PyTorch has no gloo", allow_module_level=True)

RANKS = 2
STEPS = 3

#: Each rank records each program, and runs it again with a hook that tells buckets.
PROGRAM = """
import json, os, sys, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint
import gradviz as gv

STEPS = 3


class Late(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, rank):
        ctx.rank = rank
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if ctx.rank == 1:
            time.sleep(0.03)
        return gradient, None


class Net(torch.nn.Module):
    def __init__(self, kind, rank):
        super().__init__()
        self.kind, self.rank = kind, rank
        self.first, self.second, self.third = (
            torch.nn.Linear(64, 64) for _ in range(3)
        )
        if kind == "mixed":
            self.second.double()
        self.spare = torch.nn.Linear(64, 64) if kind == "unused" else None

    def forward(self, x):
        x = self.first(x)
        if self.kind == "checkpoint":
            x = checkpoint(self.second, x, use_reentrant=True)
        else:
            x = self.second(x.to(self.second.weight.dtype)).float()
        return self.third(Late.apply(x, self.rank))


def wrapped(kind, rank):
    torch.manual_seed(5)
    net = Net(kind, rank)
    if kind == "sharded":
        from torch.distributed.fsdp import fully_shard
        for part in (net.first, net.second, net.third, net):
            fully_shard(part)
        return net
    options = {"find_unused_parameters": kind == "unused"}
    return DDP(net, bucket_cap_mb=0.02, **options)


def train(model, kind, done):
    x = torch.arange(512.0).reshape(8, 64) / 512
    if kind == "checkpoint":
        x.requires_grad_()
    for step in range(STEPS):
        if kind == "silent":
            with model.no_sync():
                model(x).sum().backward()
        else:
            model(x).sum().backward()
        done(step)


def gradients(model):
    return [
        None if one.grad is None else getattr(one.grad, "_local_tensor", one.grad)
        for one in model.parameters()
    ]


def ask(kind, rank):
    told = []
    model = wrapped(kind, rank)
    if kind != "sharded":
        names = {id(one): name for name, one in model.named_parameters()}

        def hook(_, bucket):
            told[-1].append([names[id(one)] for one in bucket.parameters()])
            buffer = bucket.buffer().div_(dist.get_world_size())
            work = dist.all_reduce(buffer, async_op=True)
            return work.get_future().then(lambda one: one.value()[0])

        model.register_comm_hook(None, hook)
    told.append([])
    train(model, kind, lambda step: told.append([]))
    return told[:-1], gradients(model)


def main(rank):
    os.environ["RANK"] = str(rank)
    torch.set_num_threads(1)
    meet = f"file://{os.getcwd()}/meet"
    dist.init_process_group("gloo", meet, rank=rank, world_size=2)
    found = {}
    for kind in ("plain", "unused", "mixed", "checkpoint", "silent", "sharded"):
        told, expected = ask(kind, rank)
        model = wrapped(kind, rank)
        with gv.pytorch.record(f"{kind}.{rank}.gvt"):
            train(model, kind, lambda step: None)
        same = all(
            (one is None and other is None) or torch.equal(one, other)
            for one, other in zip(gradients(model), expected, strict=True)
        )
        found[kind] = {"buckets": told, "same": same}
        dist.barrier()
    with open(f"told.{rank}.json", "w") as file:
        json.dump(found, file)
    dist.destroy_process_group()


children = []
for rank in range(2):
    child = os.fork()
    if not child:
        code = 1
        try:
            main(rank)
            code = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    children.append(child)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in children))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Traces of each program and rank, and what the hooks of each rank were told."""
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "program.py").write_text(PROGRAM)
    ended = run_warm("program.py", modules=WITH_PYTORCH, cwd=folder)
    assert ended.exit_code == 0, ended.errors
    return folder


@pytest.fixture(params=range(RANKS), ids="rank {}".format)
def rank(request):
    return request.param


def read(folder, kind, rank):
    return load_trace(folder / f"{kind}.{rank}.gvt")


def of_kind(trace, kind):
    return [one for one in trace.events() if isinstance(one, kind)]


def told(folder, kind, rank):
    return json.loads((folder / f"told.{rank}.json").read_text())[kind]


def passes_of(trace):
    """Return the outermost passes, in order."""
    return [one.task for one in of_kind(trace, e.TaskBegun) if one.parent < 0]


def buckets_of(trace, task):
    """Return the parameters of each bucket of a pass and the passes inside of it."""
    inner = {one.task for one in of_kind(trace, e.TaskBegun) if one.parent == task}
    found = {}
    for one in of_kind(trace, e.GradientBucketed):
        if one.task in {task, *inner}:
            (name,) = trace.nodes[one.node].parameters
            _, name = name.split(".", 1)
            found.setdefault(one.bucket, []).append(name)
    return [sorted(found[number]) for number in sorted(found)]


@pytest.mark.parametrize("kind", ["plain", "unused", "mixed", "checkpoint"])
def test_buckets_hold_the_parameters_that_a_communication_hook_is_told(
    folder, kind, rank
):
    trace = read(folder, kind, rank)
    expected = told(folder, kind, rank)["buckets"]
    got = [buckets_of(trace, task) for task in passes_of(trace)]

    spare = {"module.spare.weight", "module.spare.bias"}  # has no gradient
    assert got == [
        [sorted(set(bucket) - spare) for bucket in step if set(bucket) - spare]
        for step in expected
    ]


@pytest.mark.parametrize("kind", ["plain", "unused", "mixed", "checkpoint"])
def test_each_bucket_has_one_all_reduce_after_its_last_gradient(folder, kind, rank):
    trace = read(folder, kind, rank)
    last = {}
    for one in of_kind(trace, e.GradientBucketed):
        last[one.task, one.bucket] = one
    began = of_kind(trace, e.CollectiveBegan)

    for one in began:
        assert one.name == "gloo:all_reduce"
        assert (one.rank, one.world_size) == (rank, RANKS)
        if one.bucket is not None and (one.task, one.bucket) in last:
            assert one.t_ns > last[one.task, one.bucket].t_ns
    numbers = [len(step) for step in told(folder, kind, rank)["buckets"]]
    assert len([one for one in began if one.bucket is not None]) == sum(numbers)


@pytest.mark.parametrize(
    "kind", ["plain", "unused", "mixed", "checkpoint", "silent", "sharded"]
)
def test_recording_changes_no_gradient(folder, kind, rank):
    assert told(folder, kind, rank)["same"]


@pytest.mark.parametrize(
    "kind", ["plain", "unused", "mixed", "checkpoint", "silent", "sharded"]
)
def test_traces_of_ranks_are_free_of_contradictions(folder, kind, rank):
    assert check_trace(read(folder, kind, rank)).violations == ()


def test_a_collective_ends_once_after_it_began(folder, rank):
    trace = read(folder, "plain", rank)
    began = {one.collective: one.t_ns for one in of_kind(trace, e.CollectiveBegan)}
    ended = {one.collective: one.t_ns for one in of_kind(trace, e.CollectiveEnded)}

    assert began.keys() == ended.keys()
    assert all(began[one] < ended[one] for one in began)


@pytest.mark.parametrize("kind", ["plain", "unused", "mixed"])
def test_the_wait_for_collectives_at_the_end_of_a_pass_is_no_time_of_a_node(
    folder, kind, rank
):
    trace = read(folder, kind, rank)
    ended = {one.task: one.t_ns for one in of_kind(trace, e.NodeCompleted)}
    launched = {one.task: one.t_ns for one in of_kind(trace, e.CollectiveBegan)}

    assert launched.keys() == ended.keys()
    assert all(ended[task] < launched[task] for task in ended)


def test_no_bucket_is_filled_without_synchronization(folder, rank):
    trace = read(folder, "silent", rank)

    assert not of_kind(trace, e.GradientBucketed)
    assert not of_kind(trace, e.CollectiveBegan)


def test_gathers_and_scatters_of_sharded_models_name_their_node(folder, rank):
    trace = read(folder, "sharded", rank)
    began = of_kind(trace, e.CollectiveBegan)

    # Gloo scatters by an all-reduce.
    assert {one.name for one in began} == {"gloo:all_gather", "gloo:all_reduce"}
    scatters = [one for one in began if one.name == "gloo:all_reduce"]
    assert [trace.nodes[one.node].module for one in scatters] == STEPS * [
        *("FSDPNet.third", "FSDPNet.second", ""),
    ]
    assert {one.bucket for one in began} == {None}
