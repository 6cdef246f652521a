"""Train with PyTorch's DistributedDataParallel in two processes on this machine."""

import argparse
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

WORLD_SIZE = 2


class Late(torch.autograd.Function):
    """The identity, with a backward that sleeps."""

    @staticmethod
    def forward(ctx, values, milliseconds):
        ctx.milliseconds = milliseconds
        return values.clone()

    @staticmethod
    def backward(ctx, grad):
        time.sleep(ctx.milliseconds / 1000)
        return grad, None


def train(rank, meeting_place, steps, late_ms):
    """Train in one of the processes; the backward of the last one is `late_ms` late."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=meeting_place, rank=rank, world_size=WORLD_SIZE
    )
    torch.manual_seed(0)
    layers = [layer for _ in range(4) for layer in (nn.Linear(64, 64), nn.ReLU())]
    # Each bucket of gradients is sent as soon as it is full, beside the backward.
    model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=0.02)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        values = model(torch.randn(16, 64) + rank)
        if late_ms:
            values = Late.apply(values, late_ms if rank == WORLD_SIZE - 1 else 0)
        loss = values.square().mean()
        loss.backward()
        optimizer.step()
    total = sum(parameter.sum() for parameter in model.parameters())
    print(f"rank {rank}: the parameters' sum is {total.item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--late", type=int, default=0, help="milliseconds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        meeting_place = (Path(folder) / "meeting").as_uri()
        multiprocessing.spawn(
            train,
            (meeting_place, arguments.steps, arguments.late),
            nprocs=WORLD_SIZE,
        )


if __name__ == "__main__":
    main()
