"""Mutants: changes to the engine and the trace, drawn at random, for tests to notice.

Run as ``python -m tests.mutation [--count N] [--seed S] [--workers W]``, or by
``make mutants``. For each mutant the tests run that are nearest to what was changed,
then those of the package, then all but the largest tables; the first that fails has
noticed it. Without any change all of them must pass. Prints a line for each mutant, and
those that nobody noticed at the end.
"""

import argparse
import compileall
import os
import py_compile
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

from tests.mutation.sites import Site, changed, sites

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("engine", "trace")
#: What a mutant is tried on after the tests of its own package.
REST: Final = (
    "tests/stress/test_interleavings.py",
    "tests/capture/test_session.py",
    "tests/stream_check/test_checker.py",
    "tests/capture/test_recorded_schedule.py",
    *("tests/analysis", "tests/testing", "tests/interleavings", "tests/autograd"),
    *("tests/tensors", "tests/checkpointing", "tests/cli", "tests/faults"),
    "tests/integration",
    "tests/parity/test_random_graphs.py",
)
#: A change may make a test wait forever: that is noticed, too.
HANG_SECONDS: Final = 30
#: For what no timer of the tests' own process can end; all of them take a few minutes.
TIMEOUT_SECONDS: Final = 1_800


class Mutant(NamedTuple):
    """A change to a module of gradviz."""

    path: str
    site: Site

    def __str__(self) -> str:
        return f"{self.path}:{self.site.line}: {self.site.what}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    chosen = parser.parse_args()
    mutants = draw(chosen.count, chosen.seed)
    with tempfile.TemporaryDirectory() as folder:
        places: SimpleQueue[Path] = SimpleQueue()
        for number in range(chosen.workers):
            places.put(place := _copy(Path(folder) / str(number)))
        every = (*(f"tests/{package}" for package in PACKAGES), *REST)
        if failure := _failure(place, every):
            parser.exit(1, f"{failure}\nsome tests fail without any change\n")
        with ThreadPoolExecutor(chosen.workers) as pool:
            noticed = list(pool.map(lambda mutant: _try(mutant, places), mutants))
    survivors = [m for m, by in zip(mutants, noticed, strict=True) if not by]
    found = len(mutants) - len(survivors)
    print(f"\n{found} of {len(mutants)} noticed, seed {chosen.seed}; not noticed:")
    print(*survivors, sep="\n")


def draw(count: int, seed: int) -> list[Mutant]:
    """`count` of all changes that can be made, or all if they are fewer."""
    every = [
        Mutant(str(path.relative_to(ROOT)), site)
        for package in PACKAGES
        for path in sorted((ROOT / "gradviz" / package).rglob("*.py"))
        for site in sites(path.read_text())
    ]
    return random.Random(seed).sample(every, min(count, len(every)))


def _copy(place: Path) -> Path:
    """A copy of the repository that can be changed, with its modules compiled."""
    shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    compileall.compile_dir(
        place, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH
    )
    return place


def _try(mutant: Mutant, places: "SimpleQueue[Path]") -> str:
    """Return the tests that notice a mutant, empty if none do."""
    place = places.get()
    path = place / mutant.path
    source = path.read_text()
    try:
        path.write_text(changed(source, mutant.site))
        by = next((tests[0] for tests in _rounds(mutant) if _failure(place, tests)), "")
    finally:
        path.write_text(source)
        places.put(place)
    print(f"{'noticed by ' + by if by else 'NOT NOTICED':60} {mutant}", flush=True)
    return by


def _rounds(mutant: Mutant) -> Iterator[tuple[str, ...]]:
    _, package, *rooms, module = Path(mutant.path).parts
    nearest = Path("tests", package, *rooms, f"test_{module}")
    if (ROOT / nearest).exists():
        yield (str(nearest),)
    yield (f"tests/{package}",)
    yield tuple(f"tests/{one}" for one in PACKAGES if one != package)
    yield REST


def _failure(place: Path, tests: tuple[str, ...]) -> str:
    """Return the output of the tests if one of them fails; else nothing."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not stress"]
    command += ["-p", "no:cacheprovider", "-p", "no:randomly"]
    command += ["-o", f"hang_timeout={HANG_SECONDS}"]
    surroundings = {
        **os.environ,
        "PYTHONPATH": str(place),
        "PYTHONDONTWRITEBYTECODE": "",  # tests are compiled once, not for each mutant
    }
    try:
        done = subprocess.run(
            [*command, *tests],
            cwd=place,
            env=surroundings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not over after {TIMEOUT_SECONDS} s"
    if not done.returncode:
        return ""
    return done.stdout or f"exit code {done.returncode}"


if __name__ == "__main__":
    main()
