"""Optimizers and learning rate schedulers, under PyTorch's names.

In: parameters and their gradients. Out: parameters, changed in place. Read `optimizer`,
`sgd` and `adam`; `schedule`, then `lr_scheduler`, which names all schedulers.
"""

from gradviz.optim import lr_scheduler
from gradviz.optim.adam import Adam, AdamW
from gradviz.optim.adam_variants import Adamax, NAdam, RAdam
from gradviz.optim.adaptive import Adadelta, Adagrad, RMSprop
from gradviz.optim.averaging import ASGD
from gradviz.optim.lbfgs import LBFGS
from gradviz.optim.optimizer import Optimizer
from gradviz.optim.sgd import SGD
from gradviz.optim.signs import Rprop

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]
