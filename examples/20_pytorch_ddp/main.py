"""Train with PyTorch's DistributedDataParallel in two processes on this machine."""

import argparse
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

WORLD_SIZE = 2


def train(rank, meeting_place, steps):
    """What each process does."""
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
        loss = model(torch.randn(16, 64) + rank).square().mean()
        loss.backward()
        optimizer.step()
    total = sum(parameter.sum() for parameter in model.parameters())
    print(f"rank {rank}: the parameters' sum is {total.item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        meeting_place = (Path(folder) / "meeting").as_uri()
        multiprocessing.spawn(
            train, (meeting_place, arguments.steps), nprocs=WORLD_SIZE
        )


if __name__ == "__main__":
    main()
