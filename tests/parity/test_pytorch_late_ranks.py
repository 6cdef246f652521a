"""Four ranks over gloo, one of which is late in each step: it is named, and why."""

import pytest

from gradviz.analysis.causes.stragglers import find_collectives
from gradviz.trace.merging.merged_file import merged
from gradviz.trace.merging.placement import place
from gradviz.trace.reading.reader import load_trace, parse_trace
from tests.warm_python import WITH_PYTORCH, run_warm

torch = pytest.importorskip("torch")
if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    pytest.skip("PyTorch has no gloo", allow_module_level=True)

pytestmark = [pytest.mark.parity, pytest.mark.stress]

RANKS = 4

#: The late rank of a step begins its backward first, and waits in that of `Late` until
#: the others have launched the all-reduce of the bucket of `second`. Then it waits ten
#: times as long again: however slow the machine is, no other node took as long.
PROGRAM = """
import os, sys, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
import gradviz as gv

RANKS = 4


class Late(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, wait):
        ctx.wait = wait
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.wait()
        return gradient, None


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = (
            torch.nn.Linear(64, 64) for _ in range(3)
        )

    def forward(self, x, wait, tell):
        x = self.first(x)
        x.register_hook(tell)
        return self.third(Late.apply(self.second(x), wait))


def main(rank):
    os.environ["RANK"] = str(rank)
    torch.set_num_threads(1)
    meet = f"file://{os.getcwd()}/meet"
    dist.init_process_group("gloo", meet, rank=rank, world_size=RANKS)
    store = dist.FileStore(f"{os.getcwd()}/told", RANKS)
    model = DDP(Net(), bucket_cap_mb=0.02)
    with gv.pytorch.record(f"{rank}.gvt"):
        for step in range(1 + RANKS):  # in the first one, buckets are not yet as usual
            others = [f"{step} {one}" for one in range(RANKS) if one != rank]
            is_late = step == rank + 1
            tell = lambda _: store.set(f"{step} {rank}", "launched")

            def wait():
                if is_late:
                    store.set(f"{step} begun", "")
                    store.wait(others)
                    until = time.monotonic() + 10 * (time.monotonic() - began)
                    while time.monotonic() < until:
                        pass

            loss = model(torch.ones(8, 64), wait, tell).sum()
            if step and not is_late:
                store.wait([f"{step} begun"])
            began = time.monotonic()
            loss.backward()
    dist.destroy_process_group()


children = []
for rank in range(RANKS):
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


def test_of_four_ranks_the_late_one_is_named_with_the_node_that_made_it_late(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = run_warm("program.py", modules=WITH_PYTORCH, cwd=tmp_path)
    assert ended.exit_code == 0, ended.errors
    traces = [load_trace(tmp_path / f"{rank}.gvt") for rank in range(RANKS)]

    use = find_collectives(parse_trace(b"".join(merged(place(traces)))))

    reduced = [
        one
        for one in use.collectives
        if any(
            "second.weight" in str(grad.parameters) for grad in one.ranks[0].gradients
        )
    ]
    assert [len(one.ranks) for one in reduced] == [RANKS] * (1 + RANKS)
    late = [one.straggler for one in reduced[1:]]
    assert [one.rank for one in late] == list(range(RANKS))
    assert {(one.cause, one.name) for one in late} == {("node", "LateBackward")}
