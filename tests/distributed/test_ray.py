import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gradviz.distributed import WorkerFailedError, autograd, rpc, spawn
from gradviz.distributed.launching.actors import start_actors
from gradviz.distributed.messaging.failures import PeerDownError
from gradviz.distributed.messaging.future import completed
from gradviz.distributed.transport.frames import Ask, encode, pieces
from gradviz.distributed.transport.ray import RayTransport, open_boxes, ray_module
from gradviz.errors import MissingToolError
from tests.distributed import spawned
from tests.distributed.boxes import NODE, RAY, RayNetwork
from tests.distributed.waiting import until


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingToolError, match=r"pip install 'gradviz\[ray\]'"):
        spawn(spawned.good, 2, transport="ray")


@RAY
def test_workers_on_three_nodes_have_one_backward(ray_nodes):
    args = ("worker no.", [2, "three"], sys.argv)
    spawn(spawned.given, 3, args, transport="ray")


@RAY
def test_workers_are_spread_over_the_nodes(ray_nodes):
    spawn(spawned.spread, 3, transport="ray")


@RAY
@pytest.mark.parametrize("how", ["SIGKILL", "SIGSTOP", "node"])
def test_all_others_are_told_in_mid_backward_of_one_that_ends_and_go_on(ray_nodes, how):
    head = ray_nodes.head_node.node_id
    words = "gave no sign of life" if how == "SIGSTOP" else "is gone"
    with pytest.raises(WorkerFailedError, match=rf"worker \d of 3 {words}"):
        spawn(spawned.one_ends, 3, (how, head), transport="ray")
    if how == "node":
        ray_nodes.add_node(**NODE)


@RAY
def test_an_error_of_an_actor_is_raised_and_ends_the_other_workers(ray_nodes):
    with pytest.raises(WorkerFailedError, match=r"(?s)worker 1 of 3 .*ValueError: no"):
        spawn(spawned.waiting_for_one_that_raises, 3, transport="ray")


@RAY
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda frame: frame[:-1], "cut short"),
        (lambda frame: b"x" + frame, "begins with"),
        (lambda frame: frame + b"x", "more than it says"),
        (lambda frame: frame.replace(b"<f8", b"|O8"), "expected numbers"),
    ],
)
def test_a_frame_that_is_wrong_is_the_end_of_its_sender(ray_nodes, damage, words):
    with RayNetwork(2) as network:
        first, second = network.transports
        lost = network.sync.mailbox()
        first.start(lambda *_: completed(network.sync, ({}, ())), lambda *_: None)
        second.start(lambda *_: None, lambda *told: lost.put(told))
        second.request(0, {}).wait(30)
        frame = b"".join(pieces(0, encode(Ask(1, {}), [np.ones(2)])))
        network.boxes[1].deliver.remote(0, damage(frame))
        peer, reason = lost.get(timeout=30)
        assert peer == 0
        assert words in reason
        with pytest.raises(PeerDownError, match="is not understood"):
            second.request(0, {}).wait()


@RAY
def test_a_program_that_is_no_actor_can_be_a_worker_beside_actors(ray_nodes):
    boxes = open_boxes(3)
    others = start_actors(spawned.serving, boxes)
    rpc.init(transport=RayTransport(0, boxes))
    try:
        there_and_back = spawned.backward_of(
            lambda to, x: rpc.rpc_sync(to, spawned.doubled_by, (x, 0)), 1
        )
        assert there_and_back == [4.0, 4.0]
        through_both = spawned.backward_of(
            lambda to, x: rpc.rpc_sync(to, spawned.doubled_by, (x, 2)), 1
        )
        assert through_both == [4.0, 4.0]
        assert rpc.rpc_sync(2, spawned.backward_through, (0,)) == [2.0, 2.0]
        until(lambda: not any(autograd.debug_info().values()))
    finally:
        rpc.shutdown()
    assert ray_module().get(others) == ["", ""]


#: Two workers look where they are, and at what is beside them.
ELSEWHERE = """
import os, pathlib, sys
import helper
from gradviz.distributed import rpc, spawn

HERE = pathlib.Path(__file__).resolve().parent

def main(rank, home, data):
    rpc.init()
    for one in (HERE, helper.HERE, pathlib.Path.cwd(), *map(pathlib.Path, sys.path)):
        assert not one.resolve().is_relative_to(home), one
    assert (HERE / data).read_text() == helper.WORDS
    assert not [*pathlib.Path.cwd().rglob("*.gvt")]
    assert "PYTHONPATH" not in os.environ or home not in os.environ["PYTHONPATH"]
    rpc.shutdown()

if __name__ == "__main__":
    home, data, *folder = sys.argv[1:]
    spawn(main, 2, (home, data), transport="ray", folder=folder[0] if folder else None)
    print("right")
"""


@RAY
@pytest.mark.parametrize(
    ("data", "folder"), [("data.txt", []), ("../data.txt", [".."])]
)
def test_the_folder_of_a_program_goes_to_nodes_that_do_not_have_it(
    ray_nodes, tmp_path, data, folder
):
    place = tmp_path / "home" / "program"
    place.mkdir(parents=True)
    (place / "program.py").write_text(ELSEWHERE)
    (place / "helper.py").write_text(
        "import pathlib\nHERE = pathlib.Path(__file__).parent\nWORDS = 'some words'\n"
    )
    (place / data).write_text("some words")
    (place / "secret.gvt").write_text("a trace of before")
    ran = subprocess.run(
        [sys.executable, place / "program.py", tmp_path / "home", data, *folder],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert "right" in ran.stdout, ran.stderr


JOIN = """
from gradviz.distributed import spawn
from gradviz.errors import UserError
try:
    spawn(print, 1, transport="ray")
except UserError as error:
    print(error)
"""


@RAY
@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"RAY_AUTH_TOKEN": "ab" * 32}, "it has another token than this process"),
        ({"RAY_AUTH_MODE": "disabled"}, "it has another token than this process"),
        ({"RAY_AUTH_TOKEN": ""}, "there is no token here"),
    ],
)
def test_a_cluster_is_joined_only_with_its_token(ray_nodes, tmp_path, variables, words):
    own = {"PYTHONPATH": str(Path.cwd()), "RAY_NUM_REDIS_GET_RETRIES": "2"}
    nobody = {"HOME": str(tmp_path)}  # who has no file with a token
    joined = subprocess.run(
        [sys.executable, "-c", JOIN],
        env={**os.environ, **own, **nobody, **variables},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert f"cluster at {os.environ['RAY_ADDRESS']} was not joined" in joined.stdout
    assert words in joined.stdout
    assert "~/.ray/auth_token" in joined.stdout
