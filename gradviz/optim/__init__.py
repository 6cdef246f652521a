"""Optimizers, under PyTorch's names."""

from gradviz.optim import lr_scheduler
from gradviz.optim.adam import Adam, AdamW
from gradviz.optim.adaptive import Adagrad, RMSprop
from gradviz.optim.optimizer import Optimizer
from gradviz.optim.sgd import SGD

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "Optimizer",
    "RMSprop",
    "lr_scheduler",
]
