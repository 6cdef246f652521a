"""Advice, in sentences: finding, cost, and recommendation."""

from collections.abc import Callable, Mapping
from typing import Final

from rich.console import Console

from gradviz.analysis.findings.advice import Advice
from gradviz.analysis.findings.time_findings import MAX_DEPTH
from gradviz.analysis.memory.finding import AdviceRule, CostlyFinding
from gradviz.render.terminal.cells import (
    make_console,
    name_text,
    node_text,
    print_heading,
    print_wrapped,
)
from gradviz.render.words.text import clean, count, duration, place, size


def print_advice(advice: Advice, console: Console | None = None) -> None:
    """Print savings of time or memory, the largest first."""
    console = console or make_console()
    total = len(advice.findings) + advice.num_omitted
    if not total:
        nothing = "Advice: nothing found that would save time or memory"
        print_heading(console, nothing)
    else:
        print_heading(console, "Advice", len(advice.findings), total)
    for one in advice.findings:
        print_wrapped(console, finding_text(one), "", "  ")
    if rules := advice.not_looked_for:
        names = ", ".join(one.replace("_", " ") for one in rules)
        said = f"Not looked for, because the trace lacks events: {names}."
        print_wrapped(console, said, "dim", "")


def finding_text(one: CostlyFinding) -> str:
    """Return a finding's place, advice, cost, and certainty."""
    where = clean(place(one.location)) or "somewhere"
    costs = []
    if one.cost_ns:
        costs.append(f"up to {duration(one.cost_ns)}")
    if one.cost_bytes:
        costs.append(f"up to {size(one.cost_bytes)}")
    if one.times > 1 and one.rule in _IN_PASSES:
        costs.append(f"in {count(one.times, 'pass')}")
    told = f" ({', '.join(costs)})" if costs else ""
    sure = "" if one.certainty == "certain" else " This is likely, not certain."
    return f"{where}: {_SAID[one.rule](one)}{told}.{sure}"


def _deep_nesting(one: CostlyFinding) -> str:
    spawned = f", as it did {clean(one.detail)} times here" if one.detail else ""
    return (
        f"passes are nested {one.count} deep; at {MAX_DEPTH} an engine takes another "
        f"thread{spawned}. Compute the inner gradients before, or with create_graph"
    )


def _branches_in_turn(one: CostlyFinding) -> str:
    return (
        f"{_node(one)} and what ran beside it do not need each other, and one thread "
        f"ran them in turn. On a device of its own, a branch has a thread of its own"
    )


def _one_leaf(one: CostlyFinding) -> str:
    return (
        f"{_node(one)} adds up {one.count} gradients in a pass, which is much of its "
        f"time. Use its leaf fewer times, in larger operations"
    )


def _slow_hooks(one: CostlyFinding) -> str:
    hook = clean(one.detail).replace("_", " ")
    return (
        f"{hook} hooks, called {count(one.count, 'time')}, such as of {_node(one)}, "
        f"take much of the passes that call them. Do less there, or after the pass"
    )


def _needless_wait(one: CostlyFinding) -> str:
    if one.certainty == "certain":
        return f"{clean(one.detail)} need not wait: it already does. Drop the wait"
    return f"the wait of {clean(one.detail)} had no effect. Drop it, or move it later"


def _accumulate_stream_mismatch(one: CostlyFinding) -> str:
    cause = (
        "It is alive since an earlier pass: drop that pass's loss"
        if one.count
        else "It was made before, under another stream: drop earlier graphs"
    )
    waiting, _, awaited = clean(one.detail).partition(" for ")
    return (
        f"{_node(one)} accumulates on {waiting} what was made on {awaited}, and waits "
        f"for it. {cause}, or build DDP and run each forward under one stream"
    )


def _host_wait(one: CostlyFinding) -> str:
    within = (
        f"within {_node(one)}" if one.node >= 0 else "in a pass, between its nodes,"
    )
    return (
        f"{within} the host waited for {clean(one.detail)}, "
        f"{count(one.count, 'time')}, and launched nothing meanwhile. Keep the value "
        f"on the device: item(), tolist(), cpu() and tests of values wait"
    )


def _graph_never_run(one: CostlyFinding) -> str:
    return (
        f"{count(one.count, 'node')} of a graph that no pass ran, most here, saved "
        f"tensors. Compute that under gv.no_grad()"
    )


def _graph_held_over(one: CostlyFinding) -> str:
    return (
        f"{count(one.count, 'node')}, such as {_node(one)}, held what they saved over "
        f"{count(one.times, 'pass')} that did not use it. Call backward before, or "
        f"detach"
    )


def _graph_grows(one: CostlyFinding) -> str:
    return (
        f"each pass runs again what passes before it ran, and more, at last "
        f"{count(one.count, 'node')}. Detach what one step takes from the step before"
    )


def _graphs_pile_up(one: CostlyFinding) -> str:
    held = f", held by {clean(one.detail)}" if one.detail else ""
    if one.detail.endswith(_GRADIENT) or f"{_GRADIENT} " in one.detail:
        return (
            f"{count(one.count, 'node')} of the graphs of gradients stay alive{held}. "
            f"create_graph makes a cycle of a parameter and its .grad: use "
            f"autograd.grad, or set .grad to None after use"
        )
    if not one.times:
        return (
            f"{count(one.count, 'node')} of graphs that no pass ran stay alive{held}. "
            f"Compute that under no_grad(), or keep detach() or item() of it"
        )
    return (
        f"{count(one.count, 'node')} of the graphs of {count(one.times, 'pass')} stay "
        f"alive{held}. Keep detach() or item() of the result in place of the result"
    )


def _needless_retain_graph(one: CostlyFinding) -> str:
    del one
    return (
        "backward keeps its graph, and no pass ran any of it again. Leave out "
        "retain_graph"
    )


def _needless_create_graph(one: CostlyFinding) -> str:
    return (
        f"backward makes a graph of itself, of {count(one.count, 'node')} in all, and "
        f"no pass ran any of it. Leave out create_graph"
    )


_SAID: Final[Mapping[AdviceRule, Callable[[CostlyFinding], str]]] = {
    "deep_nesting": _deep_nesting,
    "branches_in_turn": _branches_in_turn,
    "one_leaf": _one_leaf,
    "slow_hooks": _slow_hooks,
    "needless_wait": _needless_wait,
    "accumulate_stream_mismatch": _accumulate_stream_mismatch,
    "host_wait": _host_wait,
    "graph_never_run": _graph_never_run,
    "graph_held_over": _graph_held_over,
    "graph_grows": _graph_grows,
    "graphs_pile_up": _graphs_pile_up,
    "needless_retain_graph": _needless_retain_graph,
    "needless_create_graph": _needless_create_graph,
}

#: A holder of a graph that ends so holds the gradient of a leaf.
_GRADIENT: Final = ".grad"

#: Rules of which `times` counts passes.
_IN_PASSES: Final = frozenset(_SAID) - {
    "needless_wait",
    "graph_held_over",
    "graphs_pile_up",
}


def _node(one: CostlyFinding) -> str:
    module = f" of {name_text(one.module)}" if one.module else ""
    return f"{node_text(one.name, one.node, one.index)}{module}"
