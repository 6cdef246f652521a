"""Programs of several workers, and backward passes through all of them.

Read it bottom up. *The ground*: `ids`, `future`, `failures`, `timers`, `elastic_pool`,
`thread_names`. *The graph*: `functions`, where it leaves a worker and comes in;
`gradients`, `graph_task`, `context`, `container`, `attachment`. *The pass*:
`preparation`, `execution`, `passes`, `watchdog`, `dist_engine`. *What is sent*:
`values`, `messages`, and how: `transport`, `notices`. *A worker*: `registry`, `kept`,
`rref`, `references`, `calls`, `worker`. *What users call*: `rpc`, `autograd`, `optim`,
and `launch`, with `threads` and `processes`, to start workers.
"""

import gradviz.tensors.tensor  # noqa: F401 - what comes from others is of its class
from gradviz.distributed import autograd, optim, rpc
from gradviz.distributed.failures import WorkerFailedError
from gradviz.distributed.launch import spawn

__all__ = ["WorkerFailedError", "autograd", "optim", "rpc", "spawn"]
