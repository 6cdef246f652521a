"""Schedulers of learning rates, under PyTorch's names."""

from gradviz.optim.annealing import CosineAnnealingLR, CosineAnnealingWarmRestarts
from gradviz.optim.cycles import CyclicLR, OneCycleLR
from gradviz.optim.multiplication import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from gradviz.optim.plateau import ReduceLROnPlateau
from gradviz.optim.schedule import LRScheduler
from gradviz.optim.sequences import ChainedScheduler, SequentialLR

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
