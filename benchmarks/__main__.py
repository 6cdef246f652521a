"""Times gradviz against its peers and prints ratios.

`python -m benchmarks [CASE]... [--rounds N]`; peers that are not installed are left
out. `pip install torch autograd` brings them.
"""

import argparse
import contextlib
import importlib
import platform
import sys
from types import ModuleType

import gradviz
from benchmarks.bare import bare_library
from benchmarks.cases import CASES, Case
from benchmarks.hips import hips_chain
from benchmarks.timing import Contestant, Result, compete


def main() -> None:
    """Run the cases that were named, or all."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    names = [*CASES, "tracing"]
    parser.add_argument("case", nargs="*", choices=[[], *names], default=[])
    parser.add_argument("--rounds", type=int, default=30)
    chosen = parser.parse_args()
    torch = optional("torch")
    if torch is not None:
        torch.set_num_threads(1)
    print(describe_machine(torch))
    print()
    print("| case | contestant | best | ratio | quartiles | budget |")
    print("|---|---|---|---|---|---|")
    for name in chosen.case or names:
        if name == "tracing":
            report_tracing(chosen.rounds)
            continue
        case = CASES[name]
        contestants = {"gradviz": case.make(gradviz)}
        if torch is not None:
            contestants["torch"] = case.make(torch)
        if name == "chain" and optional("autograd") is not None:
            contestants["HIPS autograd"] = hips_chain()
        against = "torch" if torch is not None else "gradviz"
        for result in compete(contestants, against, chosen.rounds):
            report(case, result)


def report_tracing(rounds: int) -> None:
    """What a recording costs: the chain, without and with one."""
    run = CASES["chain"].make(gradviz)

    def recorded() -> float:
        with gradviz.record():
            return run()

    contestants: dict[str, Contestant] = {"not recorded": run, "recorded": recorded}
    case = Case("recording the backward of the chain", lambda _: run, 2000, 1.3)
    for result in compete(contestants, "not recorded", rounds):
        report(case, result)
    contestants = {
        "without probes": CASES["chain"].make(bare_library()),
        "not recorded": run,
    }
    case = Case("probes that nobody listens to", lambda _: run, 2000, 1.02)
    for result in compete(contestants, "without probes", rounds):
        report(case, result)


def report(case: Case, result: Result) -> None:
    """One row."""
    each = result.best / case.units
    unit = f"{each * 1e6:.2f} µs" if each < 1e-3 else f"{each * 1e3:.2f} ms"
    is_ours = result.name in ("gradviz", "recorded") or case.budget == 1.02
    budget = f"≤ {case.budget}" if case.budget and is_ours else ""
    spread = f"{result.low:.2f}-{result.high:.2f}"
    print(
        f"| {case.title} | {result.name} | {unit} | {result.ratio:.2f} | {spread} "
        f"| {budget} |",
        flush=True,
    )


def describe_machine(torch: ModuleType | None) -> str:
    """What the figures were measured on."""
    import numpy as np  # noqa: PLC0415 - only for its version

    peers = "" if torch is None else f", PyTorch {torch.__version__}"
    return (
        f"Python {platform.python_version()}, NumPy {np.__version__}{peers}, "
        f"{platform.machine()}, {platform.system()}"
    )


def optional(name: str) -> ModuleType | None:
    """A peer, if it is installed."""
    with contextlib.suppress(ImportError):
        return importlib.import_module(name)
    return None


if __name__ == "__main__":
    sys.exit(main())
