"""Times gradviz against its peers and prints ratios.

`python -m benchmarks [CASE]... [--rounds N]`; peers that are not installed are left
out. `pip install torch autograd` brings them. Each case has a process of its own: what
others leave behind in the heap would change its ratio by up to a tenth.
"""

import argparse
import contextlib
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

import numpy as np

import gradviz
from benchmarks import timing
from benchmarks.bare import bare_library
from benchmarks.cases import CASES
from benchmarks.collector import STEPS_OF, collecting
from benchmarks.devices import (
    NUM_KERNELS,
    NUM_UNITS,
    backward_of_chain,
    kernels_of_chain,
    launches,
    overlap,
    waits,
)
from benchmarks.handovers import CASES as HANDOVERS
from benchmarks.handovers import NUM_CALLS as NUM_HANDOVERS
from benchmarks.handovers import heard_and_alone
from benchmarks.hips import HIPS_CASES
from benchmarks.kept import Row, changes, keep, load, row
from benchmarks.many_workers import SHAPES, SIZES, Costs, simulated
from benchmarks.memory import extra_tensors
from benchmarks.pages import BUSY_MS, FRAMES, OPEN_S, pages
from benchmarks.pictures import DOT_S, pictures
from benchmarks.scale import BUDGET, GRAPHS, LARGE, cost
from benchmarks.startup import BARE, COMMAND_MS, HELP_MS, OTHERS, startups
from benchmarks.timing import Contestant, Result, compete, count_own_time
from benchmarks.traces import answers
from benchmarks.watched import NUM_NODES as WATCHED_NODES
from benchmarks.watched import watched_steps, watchers
from benchmarks.workers import CASES as WORKER_CASES
from benchmarks.workers import costs, two_workers

#: Rows that are no race between libraries.
EXTRA = (
    "tracing",
    "collector",
    "probes",
    "handovers",
    "watched",
    "memory",
    "devices",
    "traces",
    "pictures",
    "pages",
    "startup",
    "workers",
    "scale",
)


def main() -> None:
    """Run the cases that were named, or all."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    names = [*CASES, *EXTRA]
    parser.add_argument("case", nargs="*", choices=[[], *names], default=[])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument(
        "--own-time",
        action="store_true",
        help="count processor time, for a machine that is busy with other things",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep the ratios, to be compared with by later runs",
    )
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)  # of one case
    chosen = parser.parse_args()
    if chosen.rows is not None:
        measure(chosen.case[0], chosen.rounds, own_time=chosen.own_time)
        chosen.rows.write_text(json.dumps(_measured))
        return
    print(describe_machine(optional("torch")))
    print()
    print("| case | contestant | best | ratio | quartiles | budget | holds |")
    print("|---|---|---|---|---|---|---|", flush=True)
    measured: list[Row] = []
    for name in chosen.case or names:
        measured += in_own_process(name, chosen.rounds, own_time=chosen.own_time)
    print()
    print(f"Load at the end: {describe_load()}")
    for line in changes(load(), measured):
        print(line)
    if chosen.keep:
        keep(measured)


def in_own_process(name: str, rounds: int, *, own_time: bool) -> list[Row]:
    """Measure a case in a process that has done nothing else, and print its rows."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "benchmarks", name, "--rows", str(rows)]
        command += ["--rounds", str(rounds), *(["--own-time"] if own_time else [])]
        subprocess.run(command, check=True)
        return [Row(*one) for one in json.loads(rows.read_text())]


def measure(name: str, rounds: int, *, own_time: bool) -> None:
    """Measure a case here, and print its rows."""
    if own_time:
        count_own_time()
    torch = optional("torch")
    if torch is not None:
        torch.set_num_threads(1)
    reports = {
        "tracing": lambda: report_tracing(rounds),
        "collector": lambda: report_collector(torch, rounds),
        "probes": lambda: report_probes(rounds),
        "handovers": lambda: report_handovers(rounds),
        "memory": lambda: report_memory(torch),
        "devices": lambda: report_devices(torch, rounds),
        "traces": report_traces,
        "pictures": report_pictures,
        "pages": report_pages,
        "watched": lambda: report_watched(torch, rounds),
        "startup": lambda: report_startup(rounds, own_time=own_time),
        "workers": lambda: report_workers(torch, rounds),
        "scale": lambda: report_scale(torch),
    }
    if name in reports:
        reports[name]()
    else:
        report_race(name, torch, rounds)


#: The ratios of this process that others may be compared with.
_measured: list[Row] = []


def report_race(name: str, torch: ModuleType | None, rounds: int) -> None:
    """One case: gradviz against its peers."""
    case = CASES[name]
    contestants = {"gradviz": case.make(gradviz)}
    if torch is not None:
        contestants["PyTorch"] = case.make(torch)
    if name in HIPS_CASES and optional("autograd") is not None:
        contestants["HIPS autograd"] = HIPS_CASES[name]()
    against = "PyTorch" if torch is not None else "gradviz"
    for result in compete(contestants, against, rounds):
        report(case.title, case.units, case.budget, result, "gradviz")


def report_tracing(rounds: int) -> None:
    """What a recording costs: the budgets are those of a pass that is recorded.

    A recording's writer works when there is something to write, a few times a second.
    So a pass is timed with a recording of its own, and again as one of many in a long
    recording, in which what the writer does is paid for as well.
    """
    for name, title, budget in (
        ("chain", "the backward of the chain", 1.3),
        ("small-mlp", "the step of the small MLP", None),
        ("transformer", "the step of the transformer, width 256", 1.05),
    ):
        case = CASES[name]
        run = case.make(gradviz)
        contestants = {
            "not recorded": run,
            "recorded": recorded(run, 1),
            "in a long recording": recorded(run, 10),
            "in a long flight recorder": recorded(run, 10, ring="64 MB"),
        }
        for result in compete(contestants, "not recorded", rounds):
            report(f"recording {title}", case.units, budget, result, "recorded")


def recorded(run: Contestant, times: int, ring: str | None = None) -> Contestant:
    """`run` so many times within one recording; the mean counts."""

    def contestant() -> float:
        with gradviz.record(ring=ring):
            return sum(run() for _ in range(times)) / times

    return contestant


def report_collector(torch: ModuleType | None, rounds: int) -> None:
    """What a step costs while the garbage collector works."""
    for title, make in STEPS_OF.items():
        contestants = {
            "gradviz": collecting(make(gradviz)),
            "in a long recording": collecting(make(gradviz), is_recorded=True),
        }
        if torch is not None:
            contestants["PyTorch"] = collecting(make(torch))
        against = "gradviz" if torch is None else "PyTorch"
        for result in compete(contestants, against, rounds):
            report(f"{title}, the collector at work", 1, None, result, "gradviz")


def report_watched(torch: ModuleType | None, rounds: int) -> None:
    """PyTorch's own passes, forwards and steps with somebody who looks."""
    if torch is None:
        return
    for result in compete(watchers(torch), "PyTorch", rounds):
        title = "backward of PyTorch's chain, watched (goal: 5 µs more)"
        report(title, WATCHED_NODES, None, result, "")
    for title, contestants in watched_steps(torch).items():
        for result in compete(contestants, "PyTorch", rounds):
            report(f"{title}, watched", 1, None, result, "")


def report_probes(rounds: int) -> None:
    """What it costs that one could listen, while nobody does."""
    contestants = {
        "without probes": CASES["chain"].make(bare_library()),
        "not recorded": CASES["chain"].make(gradviz),
    }
    for result in compete(contestants, "without probes", rounds):
        report("probes that nobody listens to", 2000, 1.02, result, "not recorded")


def report_handovers(rounds: int) -> None:
    """Measure locks and queues while hand-overs of threads are heard."""
    for title in HANDOVERS:
        for result in compete(heard_and_alone(title), "alone", rounds):
            report(f"{title}, heard", NUM_HANDOVERS, 2.0, result, "heard")


def report_memory(torch: ModuleType | None) -> None:
    """The peak of a backward above the end of its forward."""
    title = "peak memory of the backward of 30 tanh, above the forward's end"
    ours = extra_tensors("gradviz")
    print(f"| {title} | gradviz | {ours:.1f} tensors | | | | |")
    if torch is not None:
        print(f"| {title} | PyTorch | {extra_tensors('torch'):.1f} tensors | | | | |")


def report_scale(torch: ModuleType | None) -> None:
    """Large graphs beside small ones: what a node takes, and how much it holds."""
    for library in ("gradviz", *(["torch"] if torch is not None else [])):
        costs = {name: cost(library, name) for name in GRAPHS}
        for name, one in costs.items():
            title, forward, backward = GRAPHS[name].title, one.forward, one.backward
            row = f"| {title} | {library}, {one.num_bytes:.0f} bytes a node "
            row += f"| {forward * 1e6:.2f}, {backward * 1e6:.2f} µs "
            if name in LARGE:
                small = costs[LARGE[name]]
                ratios = forward / small.forward, backward / small.backward
                row += f"| {ratios[0]:.2f}, {ratios[1]:.2f} | "
                if library == "gradviz":
                    holds = "yes" if max(ratios) <= BUDGET else "no"
                    row += f"| ≤ {BUDGET} | {holds} "
                else:
                    row += "| | "
            else:
                row += "| | | | "
            print(f"{row}|", flush=True)


def report_devices(torch: ModuleType | None, rounds: int) -> None:
    """Simulated devices, and the first GPU if there is one."""
    for result in compete(overlap("sim:0", "sim:1"), "one device", rounds):
        # The budget: one device takes at least 1.7 times as long as two.
        report("kernels on devices", NUM_KERNELS, 0.59, result, "two devices")
    devices = ["sim:0", *(["cuda:0"] if gradviz.cuda.is_available() else [])]
    for device in devices:
        contestants = {"one launch": launches(device)}
        for result in compete(contestants, "one launch", rounds):
            title = f"a kernel is launched, {device} (goal: 5 µs)"
            report(title, NUM_UNITS, None, result, "")
        contestants = {"one wait": waits(device)}
        for result in compete(contestants, "one wait", rounds):
            report(f"a stream waits for another, {device}", NUM_UNITS, None, result, "")
        contestants = {
            "gradviz": backward_of_chain(gradviz, device),
            "its kernels alone": kernels_of_chain(gradviz, device),
        }
        if torch is not None and device.startswith("cuda"):
            contestants["PyTorch"] = backward_of_chain(torch, device)
        title = f"backward, chain of {NUM_UNITS} sin on {device}"
        for result in compete(contestants, "its kernels alone", rounds):
            report(title, NUM_UNITS, None, result, "gradviz")


def report_startup(rounds: int, *, own_time: bool) -> None:
    """Commands on a small trace: milliseconds of this machine, beside Python's own."""
    with tempfile.TemporaryDirectory() as folder:
        contestants = startups(Path(folder), own_time=own_time)
        for one in compete(contestants, BARE, rounds):
            best_ms = one.best * 1e3
            budget_ms = HELP_MS if one.name.endswith("--help") else COMMAND_MS
            holds = "yes" if best_ms <= budget_ms else "no"
            is_ours = one.name not in OTHERS
            promise = f"| ≤ {budget_ms} ms | {holds} |" if is_ours else "| | |"
            spread = f"{one.low:.1f}-{one.high:.1f}"
            print(
                f"| from start to end | {one.name} | {best_ms:.0f} ms | "
                f"{one.ratio:.1f} | {spread} {promise}",
                flush=True,
            )


def report_workers(torch: ModuleType | None, rounds: int) -> None:
    """Two processes; then many workers, simulated with what a message costs those."""
    with two_workers(torch) as worlds:
        against = "PyTorch" if "PyTorch" in worlds else "gradviz"
        for title, units, budget, make in WORKER_CASES.values():
            contestants = {name: make(*world) for name, world in worlds.items()}
            for result in compete(contestants, against, rounds):
                report(title, units, budget, result, "gradviz")
        lib, rpc, _ = worlds["gradviz"]
        took, own = costs(rpc, lib, rounds)
    # A call is two messages; its sender and its receiver compute at different times.
    message = Costs(own=own / 2, way=max(0.0, took / 2 - own))
    print(
        f"| simulated: a message costs {message.own * 1e6:.0f} µs at either end and "
        f"{message.way * 1e6:.0f} µs between | | | | | |"
    )
    for shape in SHAPES:
        for size in SIZES:
            one = simulated(shape, size, message)
            print(
                f"| {size:,} workers in {shape}, simulated | forward, backward | "
                f"{one.forward * 1e3:.2f}, {one.backward * 1e3:.2f} ms | | "
                f"{one.num_messages:,} messages | | |",
                flush=True,
            )


def report_traces() -> None:
    """Long traces: seconds and megabytes of this machine, no ratios."""
    for question, amount, budget, unit in answers():
        promise = "| |"
        if budget is not None:
            holds = "yes" if amount <= budget else "no"
            promise = f"| ≤ {budget} {unit} | {holds} |"
        figure = f"{amount:.2f} s" if unit == "s" else f"{amount:.0f} MB"
        print(f"| {question} | gradviz | {figure} | | {promise}", flush=True)


def report_pictures() -> None:
    """Pictures of large graphs: seconds of this machine, beside those of ``dot``."""
    for one in pictures():
        promise = "| |"
        if one.budget_s is not None:
            holds = "yes" if one.took_s <= one.budget_s else "no"
            promise = f"| ≤ {one.budget_s} s | {holds} |"
        peak = f"{one.peak_bytes / 1e6:.0f} MB"
        print(
            f"| {one.case}: {one.num_nodes:,} | gradviz, {peak} | {one.took_s:.2f} s "
            f"| | {promise}"
        )
        dot = f"over {DOT_S:.0f} s" if one.dot_s is None else f"{one.dot_s:.2f} s"
        print(f"| | dot | {dot} | | | |", flush=True)


def report_pages() -> None:
    """Pages in a browser: milliseconds of this machine."""
    for one in pages():
        case = f"page of {one.num_events:,} events"
        if one.slower > 1:
            case += f", a processor {one.slower} times slower"
        size = f"{one.size_bytes / 1e6:.1f} MB"
        opened, panned, played = one.measured
        is_promised = one.num_events == 100_000 and one.slower == 1
        promise = "| |"
        if is_promised:
            holds = "yes" if opened <= OPEN_S * 1e3 else "no"
            promise = f"| ≤ {OPEN_S:.0f} s | {holds} |"
        print(f"| {case} | opens, {size} | {opened / 1e3:.2f} s | | {promise}")
        for what, (median, slow, busy) in (("pans", panned), ("plays", played)):
            if is_promised:
                holds = "yes" if median <= 1e3 / FRAMES + 0.1 else "no"
                promise = f"| {FRAMES} frames/s | {holds} |"
            print(
                f"| | {what}, a frame | {median:.1f} ms | | up to {slow:.1f} {promise}"
            )
            if is_promised:
                holds = "yes" if busy <= BUSY_MS else "no"
                promise = f"| ≤ {BUSY_MS:.0f} ms | {holds} |"
            print(f"| | its work for a frame | {busy:.1f} ms | | {promise}", flush=True)


def report(
    title: str, units: int, budget: float | None, result: Result, is_ours: str
) -> None:
    """One row."""
    if result.name == is_ours and result.against != result.name:
        own_time = timing.clock is not time.perf_counter
        _measured.append(row(title, result, own_time=own_time))
    each = result.best / units
    unit = f"{each * 1e6:.2f} µs" if each < 1e-3 else f"{each * 1e3:.2f} ms"
    spread = f"{result.low:.2f}-{result.high:.2f}"
    promise = "| |"
    if budget is not None and result.name == is_ours:
        holds = "yes" if round(result.ratio, 2) <= budget else "no"
        promise = f"| ≤ {budget} | {holds} |"
    print(
        f"| {title} | {result.name} | {unit} | {result.ratio:.2f} | {spread} {promise}",
        flush=True,
    )


def describe_machine(torch: ModuleType | None) -> str:
    """What the figures were measured on."""
    peers = "" if torch is None else f", PyTorch {torch.__version__}"
    return (
        f"Python {platform.python_version()}, NumPy {np.__version__}{peers}, one "
        f"thread of BLAS{describe_kernels()}, {os.cpu_count()} cores, "
        f"{platform.machine()}, {platform.system()}; load at the beginning: "
        f"{describe_load()}"
    )


def describe_kernels() -> str:
    """For which processors NumPy's BLAS was made that it has chosen here."""
    control = optional("threadpoolctl")
    if control is None:
        return ""
    chosen = [one.get("architecture") for one in control.threadpool_info()]
    return "".join(f" ({one})" for one in chosen if one)


def describe_load() -> str:
    """How many processes wanted to run in the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def optional(name: str) -> ModuleType | None:
    """A peer, if it is installed."""
    with contextlib.suppress(ImportError):
        return importlib.import_module(name)
    return None


if __name__ == "__main__":
    sys.exit(main())
