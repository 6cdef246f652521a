"""The order in which forward passes made nodes, where ids do not say it.

Ids of one worker's own nodes grow as its forward pass makes them. Two kinds of graphs
need more:

- Nodes of PyTorch's get their ids when a pass reads them, and each pass reads only what
  is new to it. Their sequence numbers say when they were made, thread by thread.
- Ids of several workers say nothing of each other.

In both orders gradients flow from later nodes to earlier ones, so that nothing drawn by
them has a cycle.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence


def order_by_sequence(
    sequence_nrs: Sequence[int], ids: Sequence[int], edges: Iterable[tuple[int, int]]
) -> list[int]:
    """Return the place of each node in the forward order, by sequence numbers.

    This is the reverse of a backward on one thread. A leaf has the largest sequence
    number, so its place is just before that of its first user. Nodes of several threads
    are interleaved by their numbers, as far as edges allow.

    Args:
        sequence_nrs: Of each node, as `NodeDefinition.sequence_nr`.
        ids: Of each node; of equal sequence numbers the larger is later.
        edges: Producers and consumers, as positions in those.
    """
    consumers, missing = _consumers(len(ids), edges)
    ready = [
        (-sequence_nrs[node], -ids[node], node)
        for node, number in enumerate(missing)
        if not number
    ]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        *_, node = heapq.heappop(ready)
        order.append(node)
        for consumer in consumers[node]:
            missing[consumer] -= 1
            if not missing[consumer]:
                key = -sequence_nrs[consumer], -ids[consumer], consumer
                heapq.heappush(ready, key)
    return _numbers(order, ids)


def order_by_worker(
    owners: Sequence[str], ids: Sequence[int], edges: Iterable[tuple[int, int]]
) -> list[int]:
    """Return the place of each node in the forward order, of several workers.

    A worker's nodes follow each other for as long as gradients have come for any, and
    the nodes that one of them made ready follow it at once. So what belongs together is
    together.

    Args:
        owners: Of each node the worker.
        ids: Of each node the number, which is looked at among those of one worker.
        edges: Producers and consumers, as positions in those.
    """
    consumers, missing = _consumers(len(ids), edges)
    ready: dict[str, list[int]] = defaultdict(list)

    def let_start(some: Iterable[int]) -> None:
        for node in sorted(some, key=lambda one: ids[one]):
            ready[owners[node]].append(node)

    let_start(node for node, number in enumerate(missing) if not number)
    order: list[int] = []
    while ready:
        owner = next(iter(ready))
        while own := ready[owner]:
            node = own.pop()
            order.append(node)
            for consumer in consumers[node]:
                missing[consumer] -= 1
            let_start(one for one in {*consumers[node]} if not missing[one])
        del ready[owner]
    return _numbers(order, ids)


def _consumers(
    size: int, edges: Iterable[tuple[int, int]]
) -> tuple[list[list[int]], list[int]]:
    """Of each node its consumers, and how many edges lead to it."""
    consumers: list[list[int]] = [[] for _ in range(size)]
    missing = [0] * size
    for producer, consumer in edges:
        consumers[producer].append(consumer)
        missing[consumer] += 1
    return consumers, missing


def _numbers(order: list[int], ids: Sequence[int]) -> list[int]:
    """Number nodes from the last of an order to its first."""
    # A file may say anything: what leads back to itself is never ready.
    rest = {*range(len(ids))}.difference(order)
    order += sorted(rest, key=lambda node: -ids[node])
    numbers = [0] * len(order)
    for number, node in enumerate(reversed(order)):
        numbers[node] = number
    return numbers
