"""The flake hunt: the whole suite, many times, each time in another order.

Run as ``python -m tests.flakes [--count N] [--seed S] [PYTEST ARGUMENT]...``, or by
``make flakes N=20``. The first run has one core to itself; in the others each core also
runs a busy loop, so that threads lose their turn where they never do on a quiet
machine. Prints a line for each run, then each test that failed with the seeds of its
runs. The output of pytest stays in ``.flakes/``. Exits with 1 where anything failed.
Needs Linux (``taskset``).
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.flakes.report import Report, read_report

ROOT: Final = Path(__file__).parents[2]
#: One folder for the last hunt; git ignores it.
LOGS: Final = ROOT / ".flakes"
#: As in the Makefile, and in another order each time.
PYTEST: Final = (
    *(sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"),
    *("-m", "not stress and not ray and not gpu and not torch_models"),
    *("-p", "no:cacheprovider"),
)
#: A suite that hangs is a failed run. A loaded machine takes three times as long.
TIMEOUT_SECONDS: Final = 3_600


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.flakes")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    chosen, words = parser.parse_known_args()
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir()
    failures: defaultdict[str, list[int]] = defaultdict(list)
    for number in range(chosen.count):
        seed = chosen.seed + number
        start = time.monotonic()
        report = _run(seed, words, one_core=number == 0)
        took = time.monotonic() - start
        print(f"run {number + 1}/{chosen.count}, seed {seed}: {report}, {took:.0f} s")
        sys.stdout.flush()
        for name in report.failed:
            failures[name].append(seed)
    for name, seeds in sorted(failures.items(), key=lambda item: -len(item[1])):
        print(f"{len(seeds)} of {chosen.count}: {name} (seeds {seeds})")
    if failures:
        parser.exit(1, f"{len(failures)} tests are not to be relied on; see {LOGS}\n")


def _run(seed: int, words: Sequence[str], *, one_core: bool) -> Report:
    """Run the suite once, in the order of a seed."""
    results, log = LOGS / f"{seed}.xml", LOGS / f"{seed}.log"
    command = [
        *(*PYTEST, "-p", "randomly", f"--randomly-seed={seed}"),
        *(f"--junit-xml={results}", *words),
    ]
    if one_core:
        first = min(os.sched_getaffinity(0))
        command = ["taskset", "--cpu-list", str(first), *command]
    load = contextlib.nullcontext() if one_core else _busy_cores()
    with load, log.open("wb") as output:
        try:
            code = subprocess.run(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return Report(0, (f"the suite took more than {TIMEOUT_SECONDS:,} s",))
    return read_report(results, code)


@contextlib.contextmanager
def _busy_cores() -> Iterator[None]:
    """Keep each core busy with a loop that gives nothing up of its own accord."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in os.sched_getaffinity(0)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    main()
