"""A finding: something that costs a program time or memory and need not."""

from typing import Literal, TypeAlias

import msgspec

#: Kinds of advice; a function of that name tells each.
AdviceRule: TypeAlias = Literal[
    "deep_nesting",
    "branches_in_turn",
    "one_leaf",
    "slow_hooks",
    "needless_wait",
    "accumulate_stream_mismatch",
    "host_wait",
    "graph_never_run",
    "graph_held_over",
    "graph_grows",
    "graphs_pile_up",
    "needless_retain_graph",
    "needless_create_graph",
]

#: Certainty of a finding: it follows from events, or they suggest it.
Certainty: TypeAlias = Literal["certain", "likely"]


class CostlyFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that costs time or memory.

    Attributes:
        rule: Rule that found it.
        certainty: Certainty of the finding.
        location: The line of the program, empty if not known.
        cost_ns: Time that it costs at most, over all passes; None where it costs none.
        cost_bytes: Memory that it costs at most; None where it costs none.
        times: Number of passes that have it, or of its occurrences.
        task: The last pass, -1 for none.
        node: The node it is about, -1 for none.
        name: The node's.
        index: The place of that node in the execution order of `task`; None if it did
            not run there.
        module: The part of a model that made the node, empty outside a model.
        count: Depth, or number of nodes, gradients, hooks or passes: see the rule.
        detail: Streams, kind of hook, or variables.
    """

    rule: AdviceRule
    certainty: Certainty
    location: str
    cost_ns: int | None = None
    cost_bytes: int | None = None
    times: int = 1
    task: int = -1
    node: int = -1
    name: str = ""
    index: int | None = None
    module: str = ""
    count: int = 0
    detail: str = ""
