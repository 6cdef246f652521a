"""A model in three parts on three workers, fed with small batches, reads digits."""

import argparse
from pathlib import Path

import numpy as np

import gradviz as gv
from gradviz import nn
from gradviz.distributed import autograd, rpc
from gradviz.distributed.optim import DistributedOptimizer

DATA = Path(__file__).parents[1] / "01_digits_mlp" / "digits.csv.gz"
WIDTHS = (64, 64, 32, 10)
NUM_STAGES = len(WIDTHS) - 1
NUM_TEST = 360
BATCH_SIZE = 64


class Stage(nn.Module):
    """One part of the model."""

    def __init__(self, number):
        super().__init__()
        gv.manual_seed(number)
        self.linear = nn.Linear(WIDTHS[number], WIDTHS[number + 1])
        self.is_last = number == NUM_STAGES - 1

    def forward(self, x):
        x = self.linear(x)
        return x if self.is_last else x.relu()


@rpc.register
def make_stage(number):
    """Called on the worker of a stage, where it stays."""
    return Stage(number)


@rpc.register
def parameter(stage, name):
    return stage.local_value().get_parameter(name)


@rpc.register
def parameters_of(stage):
    """References to the parameters of a stage, made where it is."""
    names = [name for name, _ in stage.local_value().named_parameters()]
    return [rpc.remote(stage.owner(), parameter, (stage, name)) for name in names]


@rpc.register
def run(stages, x, digits):
    """Run a small batch through the first stage, and have the others do the rest.

    What this returns is the future of the loss: no thread waits for what comes after.
    """
    stage, *others = stages
    x = stage.local_value()(x)
    if others:
        return rpc.rpc_async(others[0].owner(), run, (others, x, digits))
    # This is the last stage: it has a score for each digit.
    return gv.cross_entropy(x, digits)


def load_digits():
    """Images as rows of 64 numbers from 0 to 1, and their digits, shuffled once."""
    table = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
    table = table[np.random.default_rng(0).permutation(len(table))]
    return gv.tensor(table[:, :-1] / 16), gv.tensor(table[:, -1].astype(np.int64))


def train(epochs, num_parts):
    images, digits = load_digits()
    stages = [rpc.remote(rank, make_stage, (rank,)) for rank in range(NUM_STAGES)]
    parameters = [
        one
        for stage in stages
        for one in rpc.rpc_sync(stage.owner(), parameters_of, (stage,))
    ]
    optimizer = DistributedOptimizer(gv.optim.SGD, parameters, lr=0.05, momentum=0.9)
    random = np.random.default_rng(0)
    for epoch in range(1, epochs + 1):
        losses = []
        order = NUM_TEST + random.permutation(len(images) - NUM_TEST)
        for batch in np.array_split(order, len(order) // BATCH_SIZE):
            with autograd.context() as context_id:
                # All parts are on their way at once: while the second stage has the
                # first of them, the first stage has the second.
                parts = [
                    rpc.rpc_async(0, run, (stages, images[part], digits[part]))
                    for part in np.array_split(batch, num_parts)
                ]
                roots = [part.wait() / num_parts for part in parts]
                autograd.backward(context_id, roots)
                optimizer.step(context_id)
            losses.append(sum(root.item() for root in roots))
        test = stages, images[:NUM_TEST], digits[:NUM_TEST]
        right = rpc.rpc_sync(0, count_right, test) / NUM_TEST
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, test {right:.1%}")
    print(f"test accuracy: {100 * right:.1f} %")


@rpc.register
def count_right(stages, x, digits):
    """Run images through the stages, as `run` does, and record no graph."""
    stage, *others = stages
    with gv.no_grad():  # on each worker: grad mode does not travel with a call
        x = stage.local_value()(x)
    if others:
        return rpc.rpc_async(others[0].owner(), count_right, (others, x, digits))
    return (x.argmax(1) == digits).sum().item()


def main(rank, epochs, num_parts):
    rpc.init(f"stage{rank}")
    if rank == 0:
        train(epochs, num_parts)
    rpc.shutdown(timeout=None)  # and until then do what others ask


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=6)
    options.add_argument("--parts", type=int, default=4, help="of each batch")
    options.add_argument("--transport", default="inproc", help="or local, or ray")
    chosen = options.parse_args()
    gv.distributed.spawn(
        main,
        NUM_STAGES,
        (chosen.epochs, chosen.parts),
        transport=chosen.transport,
        folder=DATA.parents[1],
    )
