"""Workers between which Ray carries what they send: what a test can look into."""

import os
import secrets

import pytest

from gradviz.distributed.transport.ray import RayTransport, open_boxes, ray_module
from gradviz.engine.graph.sync import THREADS

#: Of tests that need Ray: some of them take a second for each process they start.
RAY = pytest.mark.ray

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


def three_nodes():
    """Start a cluster of three nodes, and end it."""
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # else a warning
    utils = pytest.importorskip("ray.cluster_utils")
    cluster = utils.Cluster(
        initialize_head=True, head_node_args={**NODE, "include_dashboard": False}
    )
    try:
        for _ in range(2):
            cluster.add_node(**NODE)
        os.environ["RAY_ADDRESS"] = cluster.address
        yield cluster
    finally:
        os.environ.pop("RAY_ADDRESS", None)
        ray_module().shutdown()
        cluster.shutdown()


class RayNetwork:
    """A `Network` over Ray.

    Attributes:
        transports: One for each worker, all in this process.
    """

    sync = THREADS

    def __init__(self, world_size):
        self.boxes = open_boxes(world_size)
        self.transports = [RayTransport(one, self.boxes) for one in range(world_size)]

    def kill(self, rank):
        """Let a box be gone from one moment to the other."""
        ray_module().kill(self.boxes[rank])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for transport in self.transports:
            transport.close(graceful=False)
        for box in self.boxes:
            ray_module().kill(box)
