"""Train a perceptron with two hidden layers to read handwritten digits."""

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np

import gradviz as gv

DATA = Path(__file__).with_name("digits.csv.gz")
LAYERS = (64, 64, 32, 10)
NUM_TEST = 360
BATCH_SIZE = 32
LEARNING_RATE = 0.05
DECAY = 0.8  # of the learning rate, after each epoch
MOMENTUM = 0.9


def load_digits(random):
    """Images as rows of 64 numbers from 0 to 1, and their digits; shuffled."""
    table = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
    table = table[random.permutation(len(table))]
    return gv.tensor(table[:, :-1] / 16), gv.tensor(table[:, -1].astype(np.int64))


def make_parameters():
    """A weight and a bias for each layer, scaled for ReLU (He et al., 2015)."""
    parameters = []
    for num_in, num_out in pairwise(LAYERS):
        weight = gv.randn(num_in, num_out) * (2 / num_in) ** 0.5
        parameters += [weight.requires_grad_(), gv.zeros(num_out, requires_grad=True)]
    return parameters


def predict(parameters, images):
    w1, b1, w2, b2, w3, b3 = parameters
    hidden = (images @ w1 + b1).relu()
    hidden = (hidden @ w2 + b2).relu()
    return hidden @ w3 + b3


def accuracy(parameters, images, digits):
    with gv.no_grad():
        return (predict(parameters, images).argmax(1) == digits).float().mean().item()


def train_epoch(parameters, velocities, images, digits, rate, random):
    """One pass over the images in random order; returns the mean loss."""
    losses = []
    order = random.permutation(len(images))
    for batch in np.array_split(order, len(images) // BATCH_SIZE):
        loss = gv.cross_entropy(predict(parameters, images[batch]), digits[batch])
        loss.backward()
        with gv.no_grad():
            for parameter, velocity in zip(parameters, velocities, strict=True):
                velocity.mul_(MOMENTUM).add_(parameter.grad)
                parameter.sub_(rate * velocity)
                parameter.grad = None
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--epochs", type=int, default=10)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()

    gv.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)
    images, digits = load_digits(random)
    train = images[NUM_TEST:], digits[NUM_TEST:]
    test = images[:NUM_TEST], digits[:NUM_TEST]

    parameters = make_parameters()
    velocities = [gv.zeros_like(parameter) for parameter in parameters]
    print(f"{len(train[0])} images to learn from, {len(test[0])} to be tested with")
    for epoch in range(1, options.epochs + 1):
        rate = LEARNING_RATE * DECAY ** (epoch - 1)
        loss = train_epoch(parameters, velocities, *train, rate, random)
        print(f"epoch {epoch}: loss {loss:.3f}, test {accuracy(parameters, *test):.1%}")
    print(f"test accuracy: {100 * accuracy(parameters, *test):.1f} %")


if __name__ == "__main__":
    main()
