"""A layer of another worker fails, then the worker is gone; the training goes on."""

import argparse
import queue
from itertools import pairwise
from pathlib import Path

import numpy as np

import gradviz as gv
from gradviz.distributed import autograd, rpc
from gradviz.distributed.optim import DistributedOptimizer

DATA = Path(__file__).parents[1] / "01_digits_mlp" / "digits.csv.gz"
WIDTHS = (64, 32, 10)
NUM_TEST = 360
NUM_STEPS = 60
FAILS_AT, LEAVES_AT = 20, 40

#: Worker 2 leaves when there is something in it.
END = queue.SimpleQueue()


class Fragile(gv.autograd.Function):
    """Lets the gradient through, but for once."""

    @staticmethod
    def forward(ctx, x, is_broken):
        ctx.is_broken = is_broken
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        if ctx.is_broken:
            raise ValueError("a bit has flipped")
        return grad, None


@rpc.register
def make_parameter(numbers):
    """Called on the worker where the parameter is to stay."""
    return gv.tensor(numbers, requires_grad=True)


@rpc.register
def linear(weight, bias, x, is_broken):
    x = Fragile.apply(x, is_broken)
    return x @ weight.local_value() + bias.local_value()


@rpc.register
def leave():
    END.put(None)


class Layer:
    """A linear layer of another worker, and what it was when it was last seen."""

    def __init__(self, rank, weight, bias):
        self.rank = rank
        self.saved = weight, bias
        self.parameters = [rpc.remote(rank, make_parameter, (x,)) for x in self.saved]

    def __call__(self, x, is_broken=False):
        return rpc.rpc_sync(self.rank, linear, (*self.parameters, x, is_broken))

    def save(self):
        self.saved = [one.to_here().detach().numpy() for one in self.parameters]


def load_digits():
    """Images as rows of 64 numbers from 0 to 1, and their digits; shuffled."""
    table = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
    table = table[np.random.default_rng(0).permutation(len(table))]
    return gv.tensor(table[:, :-1] / 16), gv.tensor(table[:, -1].astype(np.int64))


def predict(layers, images, is_broken=False):
    first, second = layers
    return second(first(images).relu(), is_broken)


def optimizer_of(layers):
    parameters = [one for layer in layers for one in layer.parameters]
    return DistributedOptimizer(gv.optim.SGD, parameters, lr=0.2)


def step(layers, optimizer, images, digits, is_broken):
    """One step of all layers, or an error and none."""
    with autograd.context() as context_id:
        loss = gv.cross_entropy(predict(layers, images, is_broken), digits)
        autograd.backward(context_id, [loss])
        optimizer.step(context_id)
    return loss.item()


def train():
    images, digits = load_digits()
    random = np.random.default_rng(0)
    layers = []
    for rank, (num_in, num_out) in enumerate(pairwise(WIDTHS), start=1):
        weight = random.standard_normal((num_in, num_out), np.float32)
        weight *= (2 / num_in) ** 0.5
        layers.append(Layer(rank, weight, np.zeros(num_out, np.float32)))
    optimizer = optimizer_of(layers)
    number = num_errors = 0
    while number < NUM_STEPS:
        if number == LEAVES_AT and num_errors == 1:
            rpc.rpc_sync(2, leave)
        batch = random.integers(NUM_TEST, len(images), 64)
        is_broken = number == FAILS_AT and not num_errors
        try:
            loss = step(layers, optimizer, images[batch], digits[batch], is_broken)
        except rpc.PeerDownError as error:
            # What it had is lost. The last copy of it goes to one that lives, and the
            # context has ended: nothing of the step is left anywhere.
            print(f"step {number}: {error}")
            layers[1] = Layer(1, *layers[1].saved)
            optimizer = optimizer_of(layers)
            print(f"step {number}: its layer is on worker 1 now")
            num_errors += 1
        except RuntimeError as error:
            # No parameter has changed, so the step is made again.
            print(f"step {number}: {str(error).splitlines()[0]}")
            num_errors += 1
        else:
            if number % 10 == 0:
                print(f"step {number}: loss {loss:.3f}")
                for layer in layers:
                    layer.save()
            number += 1
    found = predict(layers, images[:NUM_TEST])
    right = (found.argmax(1) == digits[:NUM_TEST]).float().mean().item()
    print(f"{num_errors} failures, test accuracy: {100 * right:.1f} %")


def main(rank):
    rpc.init()
    if rank == 0:
        train()
    if rank == 2:
        END.get()
        rpc.shutdown(graceful=False)  # without a word to those who need it
    else:
        rpc.shutdown(timeout=None)  # and until then do what others ask


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--transport", default="inproc", help="or local, or ray")
    gv.distributed.spawn(
        main, 3, transport=options.parse_args().transport, folder=DATA.parents[1]
    )
