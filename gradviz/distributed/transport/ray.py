"""Workers on the nodes of a Ray cluster.

Note [Boxes]
~~~~~~~~~~~~
Ray delivers a call to an actor, on any node. So each worker has an actor, its *box*,
and frames are put into it: the same bytes that go over sockets, read with the same
checks. Ray pickles what it carries; here that is a number and bytes.

A worker either runs in the process of its box, or is a peer from outside, such as the
program that started Ray, which no actor can call: it asks its box for messages, and
that call waits until there are some. The methods of a box are coroutines and do nothing
that takes long, so any number of them can be under way, and none waits for another.

Ray does not keep the order of calls, so a goodbye waits until all else has arrived. The
death of an actor is noticed at once, since each worker has a call in each box that
never ends; Ray does not report a silent one: that is what heartbeats are for.
"""

import asyncio
import contextlib
import importlib
import io
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from gradviz.distributed.messaging.entry import function_in, program_folder
from gradviz.distributed.messaging.thread_names import thread_name
from gradviz.distributed.transport.framed import FramedTransport
from gradviz.distributed.transport.frames import (
    Bye,
    Encoded,
    FrameError,
    encode,
    pieces,
    read_frame,
)
from gradviz.engine.graph.sync import THREADS, Empty, Mailbox
from gradviz.errors import MissingToolError, UserError

#: Ray tells at once of processes that die, and after some seconds of nodes; its own are
#: many, and where they share few processors a call may take long.
_HEARTBEAT_SECONDS: Final = 5.0

#: Maximum number of methods of a box under way.
_MAX_CALLS: Final = 10_000

#: This package.
_OWN_PACKAGE: Final = Path(__file__).resolve().parents[2]

#: Files of a program's folder that stay here: traces are large, and their owner's.
_NOT_SENT: Final = ["*.gvt", "__pycache__"]

#: Advice for a cluster that cannot be joined.
_WHERE_TOKENS_ARE: Final = (
    "write what 'ray get-auth-token' says on a node of the cluster to "
    "~/.ray/auth_token, or into RAY_AUTH_TOKEN, and have RAY_AUTH_MODE be what it is "
    "there"
)

#: Sender of a frame, and its bytes.
Sent = tuple[int, bytes]


class RayBox:
    """Receives the messages of a worker; see Note [Boxes]."""

    def __init__(self) -> None:
        self.mail: Mailbox[Sent] = THREADS.mailbox()

    async def deliver(self, src: int, frame: bytes) -> None:
        """Have a frame wait for its worker."""
        self.mail.put((src, frame))

    async def take(self) -> Sent:
        """Wait for the messages of a worker that is outside, and return them."""
        return await asyncio.to_thread(self.mail.get)

    async def watch(self) -> None:
        """Nothing, as long as the box is there."""
        await asyncio.Event().wait()

    async def ping(self) -> None:
        """Nothing, at once: a sign of life."""

    async def run(self, module: str, name: str, *args: object) -> Any:  # noqa: ANN401 - the function's
        """Run a function on this box and more arguments, on a thread of its own."""
        function = function_in(module, name)
        return await asyncio.to_thread(function, self, *args)


class RayTransport(FramedTransport):
    """One worker's way to the others over Ray.

    Args:
        rank: This worker.
        boxes: Those of all workers, by rank; see `open_boxes`.
        take: Waits for what comes, and returns it. By default asks the box of this
            worker, from outside.

    Raises:
        MissingToolError: Ray is not installed.
    """

    def __init__(
        self, rank: int, boxes: Sequence[Any], take: Callable[[], Sent] | None = None
    ) -> None:
        super().__init__(rank, len(boxes), THREADS, _HEARTBEAT_SECONDS)
        self._ray = ray_module()
        self._boxes = boxes
        self._take = take or self._ask_own_box
        self._is_closed = THREADS.flag()
        self._ended: Mailbox[None] = THREADS.mailbox()
        #: Frames on their way; guarded by `_mutex`.
        self._sent: set[Any] = set()
        for peer in self._others():
            self._follow(peer, boxes[peer].watch.remote())
        self.sync.spawn(self._take_all, thread_name(rank, "box"))

    def send(
        self, peer: int, encoded: Encoded, is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        """Put a frame into a box."""
        if is_wanted():
            self._put(peer, b"".join(pieces(0, encoded)))

    def lose(self, peer: int, reason: str) -> None:
        """Take note of a worker that is gone."""
        if not self._is_closed.value:
            super().lose(peer, reason)

    def vanish(self, reason: str, *, timeout: float = 0.0) -> None:
        """Say goodbye, and take nothing more."""
        with self._mutex:
            self._handler = None
            is_closed, self._is_closed.value = self._is_closed.value, True
        if is_closed:
            return
        if timeout:
            self._wait_for_sent(timeout)  # else the goodbye might be there first
            goodbye = b"".join(pieces(0, encode(Bye(reason))))
            for peer in self._others():
                if self.why_down(peer) is None:
                    self._put(peer, goodbye)
            self._wait_for_sent(timeout)
        self._put(self.rank, b"")  # wakes the thread that takes
        with contextlib.suppress(Empty):  # its box may have died
            self._ended.get(timeout=timeout + 1)
        self.give_up("this worker has been shut down")

    def _others(self) -> list[int]:
        return [peer for peer in range(self.world_size) if peer != self.rank]

    def _put(self, peer: int, frame: bytes) -> None:
        sent = self._boxes[peer].deliver.remote(self.rank, frame)
        with self._mutex:
            self._sent.add(sent)
        self._follow(peer, sent)

    def _wait_for_sent(self, timeout: float) -> None:
        with self._mutex:
            sent = [*self._sent]
        if sent:
            self._ray.wait(sent, num_returns=len(sent), timeout=timeout)

    def _follow(self, peer: int, call: Any) -> None:  # noqa: ANN401 - a reference of Ray's
        """Lose a peer when a call of its box fails."""

        def check() -> None:
            with self._mutex:
                self._sent.discard(call)
            error = done.exception()
            if error is not None and peer != self.rank:
                self.lose(peer, f"its actor is gone ({type(error).__name__})")

        done = call.future()
        done.add_done_callback(lambda _: check())

    def _ask_own_box(self) -> Sent:
        found: Sent = self._ray.get(self._boxes[self.rank].take.remote())
        return found

    def _take_all(self) -> None:
        try:
            while True:
                src, frame = self._take()
                if self._is_closed.value:
                    return  # nobody waits any more, so nobody is told anything else
                if 0 <= src < self.world_size:
                    self._take_one(src, frame)
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            for peer in self._others():
                self.lose(peer, f"no frame reaches this worker: {error}")
        finally:
            self._ended.put(None)

    def _take_one(self, src: int, data: bytes) -> None:
        stream = io.BytesIO(data)

        def fill(view: memoryview) -> None:
            if stream.readinto(view) < len(view):
                raise FrameError("a message has been cut short")

        try:
            frame, arrays = read_frame(fill, 0)
            if stream.tell() < len(data):
                raise FrameError("a message has more than it says")
            if isinstance(frame, Bye):
                self.lose(src, frame.reason)
            else:
                self.receive(src, frame, arrays)
        except FrameError as error:
            self.lose(src, f"what it sent is not understood: {error}")


def open_boxes(
    num_workers: int, folder: str | os.PathLike[str] | None = None
) -> list[Any]:
    """A box for each worker, on the nodes in turn; starts Ray where it is not started.

    Args:
        num_workers: Number of workers.
        folder: Folder that goes to the nodes, in whose copy each worker starts; None
            for the folder of the program. Ignored where Ray is started already.

    Raises:
        MissingToolError: Ray is not installed.
        UserError: The cluster cannot be joined.
    """
    ray = ray_module()
    if not ray.is_initialized():
        _join_cluster(ray, program_folder() if folder is None else Path(folder))
    actor = ray.remote(RayBox)
    boxes = [
        actor.options(
            num_cpus=0,
            max_concurrency=_MAX_CALLS,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=place,
        ).remote()
        for place in itertools.islice(_nodes_in_turn(ray), num_workers)
    ]
    # Their processes may take long to start: the time limits of workers begin after it.
    ray.get([box.__ray_ready__.remote() for box in boxes])
    return boxes


def _nodes_in_turn(ray: ModuleType) -> Iterator[object]:
    """Yield places for actors forever: here first, and no node twice per round.

    For actors that reserve no processor, Ray takes SPREAD and a merely preferred node
    as no more than a hint.
    """
    near = importlib.import_module("ray.util.scheduling_strategies")
    here = ray.get_runtime_context().get_node_id()
    nodes = [one["NodeID"] for one in ray.nodes() if one["Alive"]]
    nodes.sort(key=lambda node: (node != here, node))
    return itertools.cycle(
        near.NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes
    )


def _join_cluster(ray: ModuleType, folder: Path) -> None:
    address = os.environ.get("RAY_ADDRESS")
    own = {} if address else {"include_dashboard": False}
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder that could go to the nodes of Ray")
    folder = folder.resolve()
    sent: dict[str, Any] = {"working_dir": str(folder), "excludes": [*_NOT_SENT]}
    if _OWN_PACKAGE.is_relative_to(folder):  # each node has its own, maybe compiled
        sent["excludes"] += [f"/{_OWN_PACKAGE.relative_to(folder)}"]
    try:
        ray.init(runtime_env=sent, **own)
    except ray.exceptions.RuntimeEnvSetupError as error:
        ray.shutdown()
        raise UserError(
            f"the folder {folder} was not sent to the nodes of the Ray cluster: "
            f"{error}; name what they do not need in {folder / '.rayignore'}, or send "
            f"another one with spawn(..., folder=...)"
        ) from None
    except ray.exceptions.AuthenticationError:
        raise UserError(
            f"the Ray cluster at {address} was not joined, for there is no token here: "
            f"{_WHERE_TOKENS_ARE}"
        ) from None
    except ConnectionError as error:
        if not address:
            raise
        raise UserError(
            f"the Ray cluster at {address} was not joined: nothing is there, or it has "
            f"another token than this process; {_WHERE_TOKENS_ARE} ({error})"
        ) from None


def ray_module() -> ModuleType:
    """Ray, which asks everybody for a token.

    Raises:
        MissingToolError: It is not installed.
    """
    # It looks at these when it is imported. A cluster without a token would run
    # whatever anybody on the network sends to it.
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise MissingToolError(
            "workers over Ray need Ray, which is not installed: "
            "pip install 'gradviz[ray]'"
        ) from None
