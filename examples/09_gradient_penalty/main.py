"""A critic whose gradients are to have length 1: a backward through a backward."""

import argparse
from pathlib import Path

import numpy as np

import gradviz as gv
from gradviz import nn

DATA = Path(__file__).parents[1] / "01_digits_mlp" / "digits.csv.gz"
BATCH_SIZE = 64
PENALTY = 10.0


def make_critic():
    """High scores for digits, low scores for noise."""
    return nn.Sequential(
        nn.Linear(64, 64),
        nn.Softplus(),
        nn.Linear(64, 64),
        nn.Softplus(),
        nn.Linear(64, 1),
    )


def gradient_lengths(critic, images):
    """How fast the score changes at each image; can be differentiated itself."""
    images = images.detach().requires_grad_()
    (gradient,) = gv.autograd.grad(critic(images).sum(), images, create_graph=True)
    return (gradient.square().sum(1) + 1e-12).sqrt()


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=150)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()

    gv.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)
    digits = np.loadtxt(DATA, delimiter=",", dtype=np.float32)[:, :-1] / 16
    critic = make_critic()
    optimizer = gv.optim.Adam(critic.parameters(), lr=3e-3, betas=(0.5, 0.9))
    for step in range(1, options.steps + 1):
        real = gv.tensor(digits[random.integers(0, len(digits), BATCH_SIZE)])
        noise = gv.rand(BATCH_SIZE, 64)
        between = real + gv.rand(BATCH_SIZE, 1) * (noise - real)

        optimizer.zero_grad()
        lengths = gradient_lengths(critic, between)
        penalty = (lengths - 1).square().mean()
        difference = critic(real).mean() - critic(noise).mean()
        (PENALTY * penalty - difference).backward()
        optimizer.step()
        if step % 50 == 0:
            print(
                f"step {step}: digits score {difference.item():.2f} more than noise, "
                f"gradients {lengths.mean().item():.2f} long"
            )
    print(f"final: difference {difference.item():.3f}, penalty {penalty.item():.4f}")


if __name__ == "__main__":
    main()
