"""An order that sorts a graph of several workers, as ids sort that of one.

Ids of one worker grow in the order in which its forward pass made the nodes; those of
several say nothing of each other. Here a worker's nodes follow each other for as long
as gradients have come for any, and what one of them let start follows it at once. So
what belongs together is together, and no cycle comes of drawing it as one.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence


def forward_numbers(
    owners: Sequence[str], ids: Sequence[int], edges: Iterable[tuple[int, int]]
) -> list[int]:
    """The place of each node in the order in which forward passes made them.

    Args:
        owners: Of each node the worker.
        ids: Of each node the number, which is looked at among those of one worker.
        edges: Producers and consumers, as positions in those.
    """
    consumers: dict[int, list[int]] = defaultdict(list)
    missing = [0] * len(ids)
    for producer, consumer in edges:
        consumers[producer].append(consumer)
        missing[consumer] += 1
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
    # A file may say anything: what leads back to itself is never ready.
    rest = {*range(len(ids))}.difference(order)
    order += sorted(rest, key=lambda one: -ids[one])
    numbers = [0] * len(order)
    for number, node in enumerate(reversed(order)):
        numbers[node] = number
    return numbers
