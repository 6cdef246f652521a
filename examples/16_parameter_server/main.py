"""Three trainers read digits; a fourth worker has the parameters, and changes them."""

import argparse
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

import gradviz as gv
from gradviz.distributed import autograd, rpc
from gradviz.distributed.optim import DistributedOptimizer

DATA = Path(__file__).parents[1] / "01_digits_mlp" / "digits.csv.gz"
LAYERS = (64, 32, 10)
NUM_TEST = 360
BATCH_SIZE = 32
NUM_TRAINERS = 3


def load_digits():
    """Images as rows of 64 numbers from 0 to 1, and their digits, shuffled once."""
    table = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
    table = table[np.random.default_rng(0).permutation(len(table))]
    return gv.tensor(table[:, :-1] / 16), gv.tensor(table[:, -1].astype(np.int64))


def predict(parameters, images):
    w1, b1, w2, b2 = parameters
    return (images @ w1 + b1).relu() @ w2 + b2


@rpc.register
def make_parameter(shape, scale, seed):
    """Called on the server, where what it returns stays."""
    random = np.random.default_rng(seed)
    numbers = random.standard_normal(shape, np.float32) * scale
    return gv.tensor(numbers, requires_grad=True)


@rpc.register
def train(parameters, rank, epochs):
    """Called on each trainer; returns the mean loss of its last epoch."""
    images, digits = load_digits()
    mine = range(NUM_TEST + rank - 1, len(images), NUM_TRAINERS)
    random = np.random.default_rng(rank)
    optimizer = DistributedOptimizer(gv.optim.SGD, parameters, lr=0.05, momentum=0.5)
    for _ in range(epochs):
        losses = []
        order = random.permutation(mine)
        for batch in np.array_split(order, len(order) // BATCH_SIZE):
            with autograd.context() as context_id:
                copies = [one.to_here() for one in parameters]
                loss = gv.cross_entropy(predict(copies, images[batch]), digits[batch])
                # The gradients arrive at the server, in this context: those of the
                # other trainers do not get mixed up with them.
                autograd.backward(context_id, [loss])
                optimizer.step(context_id)
            losses.append(loss.item())
    return sum(losses) / len(losses)


def serve(epochs):
    parameters = []
    for seed, (num_in, num_out) in enumerate(pairwise(LAYERS)):
        shapes = [((num_in, num_out), (2 / num_in) ** 0.5), ((num_out,), 0.0)]
        parameters += [rpc.remote(0, make_parameter, (*one, seed)) for one in shapes]
    began = time.perf_counter()
    trainers = [
        rpc.rpc_async(rank, train, (parameters, rank, epochs), timeout=None)
        for rank in range(1, 1 + NUM_TRAINERS)
    ]
    for rank, one in enumerate(trainers, start=1):
        print(f"trainer {rank}: mean loss of its last epoch {one.wait():.3f}")
    print(f"{time.perf_counter() - began:.1f} s")
    images, digits = load_digits()
    with gv.no_grad():
        found = predict([one.local_value() for one in parameters], images[:NUM_TEST])
    right = (found.argmax(1) == digits[:NUM_TEST]).float().mean().item()
    print(f"test accuracy: {100 * right:.1f} %")


def main(rank, epochs):
    rpc.init("server" if rank == 0 else f"trainer{rank}")
    if rank == 0:
        serve(epochs)
    rpc.shutdown(timeout=None)  # and until then do what others ask


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=6)
    options.add_argument("--transport", default="inproc", help="or local, or ray")
    chosen = options.parse_args()
    gv.distributed.spawn(
        main,
        1 + NUM_TRAINERS,
        (chosen.epochs,),
        transport=chosen.transport,
        folder=DATA.parents[1],
    )
