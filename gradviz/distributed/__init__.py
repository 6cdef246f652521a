"""Programs of several workers, and backward passes through all of them.

In: functions that workers run for each other, and losses. Out: answers, and gradients
in contexts. Read the rooms bottom up: `messaging`, `transport`, `backward`, `calling`;
then what users call, `rpc`, `autograd`, `optim`, and `launching`, which starts workers.
"""

import gradviz.tensors.tensor  # noqa: F401 - what comes from others is of its class
from gradviz.distributed import autograd, optim, rpc
from gradviz.distributed.launching.launch import spawn
from gradviz.distributed.messaging.failures import WorkerFailedError

__all__ = ["WorkerFailedError", "autograd", "optim", "rpc", "spawn"]
