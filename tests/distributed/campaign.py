"""Processes that work together, one of which something happens to at a random moment.

Each has one backward after the other, through itself and others, and always through the
victim, until one fails. That must say who it was, in time; then nothing may be left of
it, and those that live go on. ``python -m tests.distributed.campaign FIRST NUM STEP``
runs the cases of some seeds; they are forks of it, for the sake of speed.
"""

import contextlib
import faulthandler
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import gradviz as gv
from gradviz.distributed import autograd as dist_autograd
from gradviz.distributed import rpc
from gradviz.distributed.transport.rendezvous import Rendezvous
from tests.distributed.called import leaf
from tests.distributed.waiting import PATIENCE_SECONDS, is_clean, until

#: What happens: the process is killed, is stopped for good or for a while, takes long
#: in each of its nodes, or loses all of its connections.
KINDS = ("killed", "stopped", "paused", "slow", "unplugged")

#: How long a pass may take, and how long it may go on when something has happened.
PASS_SECONDS = 3.0
NOTICE_SECONDS = {"killed": 15, "unplugged": 15, "slow": 15}
SILENCE_SECONDS = 30


class Case:
    """Settings that a seed stands for."""

    def __init__(self, seed):
        self.seed = seed
        self.chance = random.Random(seed)
        self.kind = KINDS[seed % len(KINDS)]
        self.size = self.chance.choice([2, 3, 3, 4])
        self.victim = self.chance.randrange(self.size)
        self.moment = self.chance.uniform(0, 0.1)

    def __str__(self):
        return (
            f"seed {self.seed}: worker {self.victim} of {self.size} is {self.kind} "
            f"after {self.moment * 1000:.0f} ms"
        )


#: Whether each node of this process takes long.
IS_SLOW = threading.Event()
IS_FAST = threading.Event()


class Doubles(gv.autograd.Function):
    """Twice as much, as fast as the process is."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        assert not IS_SLOW.is_set() or IS_FAST.wait(PATIENCE_SECONDS)
        return grad * 2


@rpc.register
def doubled_on(workers, x):
    """Double on one worker after the other."""
    y = Doubles.apply(x)
    if not workers:
        return y
    return rpc.rpc_sync(workers[0], doubled_on, (workers[1:], y))


def one_pass(chance, workers, timeout):
    """A backward through all of some workers, in any order."""
    hops = chance.sample(workers, len(workers))
    x = leaf(1, 2)
    with dist_autograd.context() as context_id:
        loss = rpc.rpc_sync(hops[0], doubled_on, (hops[1:], x)).sum()
        dist_autograd.backward(context_id, [loss], timeout=timeout)
        found = dist_autograd.get_gradients(context_id)[x].tolist()
    assert found == [2.0 ** len(hops)] * 2, found


def work(case, rank, ready):
    """Run the work of each process."""
    rpc.init()
    worker = rpc.current_worker()
    chance = random.Random(f"{case.seed} {rank}")
    everybody = [*range(case.size)]
    signal.signal(signal.SIGUSR1, lambda *_: struck(case, worker.transport))
    signal.signal(signal.SIGUSR2, lambda *_: IS_FAST.set())
    os.write(ready, b".")
    timeout = PASS_SECONDS if case.kind == "slow" else None
    began = time.monotonic()
    try:
        while time.monotonic() - began < PATIENCE_SECONDS:
            began = time.monotonic()
            one_pass(chance, everybody, timeout)
    except RuntimeError as error:
        check_error(case, rank, str(error), time.monotonic() - began)
    os.write(ready, b".")
    survivors = everybody
    if case.kind != "slow":
        is_victim = rank == case.victim
        survivors = [one for one in everybody if (one == case.victim) == is_victim]
    for _ in range(2):
        one_pass(chance, survivors, PATIENCE_SECONDS)
    until(lambda: is_clean(worker))
    rpc.shutdown()
    until(nothing_is_left)


def struck(case, transport):
    """Apply the victim's fault, besides signals of the system."""
    if case.kind == "slow":
        IS_SLOW.set()
        return
    links = [*transport._links.values()]
    case.chance.shuffle(links)
    threading.Thread(target=lambda: [one.cut() for one in links]).start()


def check_error(case, rank, text, seconds):
    """An error must come in time, and say whom it is about."""
    is_known = re.search(
        rf"node {case.victim} is down|Error on Node {case.victim}: |"
        rf"did not end within .* to node {case.victim} ",
        text,
    )
    assert is_known or rank == case.victim, text
    assert seconds < NOTICE_SECONDS.get(case.kind, SILENCE_SECONDS), seconds


def nothing_is_left():
    """Neither thread nor socket, but for the threads of the local engine."""
    threads = [one.name for one in threading.enumerate()]
    files = []
    for path in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):  # that of the list itself
            files.append(str(path.readlink()))
    return not any(
        one.startswith("gv_") and not one.startswith("gv_autograd") for one in threads
    ) and not any(one.startswith("socket:") for one in files)


def run(case):
    """Run a case; what is wrong with it, in words."""
    with tempfile.TemporaryDirectory(prefix="gv-") as folder:
        rendezvous = Rendezvous.made_at(folder, case.size)
        heard, ready = os.pipe()
        running = {
            fork(case, rank, rendezvous, ready): rank for rank in range(case.size)
        }
        os.close(ready)
        try:
            return watch(case, rendezvous, running, heard)
        finally:
            os.close(heard)
            for pid in running:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def fork(case, rank, rendezvous, ready):
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        faulthandler.dump_traceback_later(2 * PATIENCE_SECONDS, exit=True)
        os.environ.update(rendezvous.variables(rank))
        work(case, rank, ready)
        code = 0
    except BaseException:  # noqa: BLE001 - it is the end of the process
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def watch(case, rendezvous, running, heard):
    """Have it happen when all are at work, and see how they end."""
    (victim,) = (pid for pid, rank in running.items() if rank == case.victim)
    all_say(running, heard)
    time.sleep(case.moment)
    strikes = {"killed": signal.SIGKILL}
    strikes |= dict.fromkeys(("stopped", "paused"), signal.SIGSTOP)
    os.kill(victim, strikes.get(case.kind, signal.SIGUSR1))
    if case.kind == "slow":
        all_say(running, heard)
        os.kill(victim, signal.SIGUSR2)
    wrong = []
    deadline = time.monotonic() + 3 * PATIENCE_SECONDS
    while running and time.monotonic() < deadline:
        if [*running] == [victim] and case.kind in {"stopped", "paused"}:
            is_over = case.kind == "stopped"
            os.kill(victim, signal.SIGKILL if is_over else signal.SIGCONT)
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            time.sleep(0.005)
            continue
        rank = running.pop(pid)
        rendezvous.report_exit(rank, "its process has ended")
        code = os.waitstatus_to_exitcode(status)
        is_killed = pid == victim and case.kind in {"killed", "stopped"}
        if code != (-signal.SIGKILL if is_killed else 0):
            wrong.append(f"worker {rank} ended with {code}")
    wrong += [f"worker {rank} did not end" for rank in running.values()]
    return ", ".join(wrong)


def all_say(running, heard):
    """Wait until each process has written something; or all have ended."""
    for _ in running:
        os.read(heard, 1)


def main(first, num, step=1, at_once=4):
    """Run the cases of some seeds; how many of them went wrong."""
    seeds = [*range(first, first + num * step, step)]
    wrong = num_running = 0
    while seeds or num_running:
        if seeds and num_running < at_once:
            case = Case(seeds.pop(0))
            num_running += 1
            if not os.fork():
                began = time.monotonic()
                words = run(case)
                taken = f"({time.monotonic() - began:.2f} s)"
                sys.stdout.write(f"{case} {taken} {words or 'ok'}\n")
                sys.stdout.flush()
                os._exit(bool(words))
        else:
            _, status = os.wait()
            num_running -= 1
            wrong += bool(status)
    return wrong


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
