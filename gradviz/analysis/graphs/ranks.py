"""The ranks of a graph's nodes: how far each is from the roots, at the longest."""

from collections.abc import Iterable


def longest_path_ranks(num_nodes: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """For each node, the length of the longest path to it from a node without inputs.

    A graph of a damaged trace may have cycles. Their edges are taken as they come:
    when nothing is left without inputs, the first node that remains is ranked as if
    it had none.
    """
    edges = list(edges)
    consumers: list[list[int]] = [[] for _ in range(num_nodes)]
    missing = [0] * num_nodes
    for producer, consumer in edges:
        consumers[producer].append(consumer)
        missing[consumer] += 1
    ranks = [0] * num_nodes
    is_ranked = [False] * num_nodes
    ready = [node for node in range(num_nodes) if not missing[node]]
    for candidate in range(num_nodes + 1):
        while ready:
            node = ready.pop()
            is_ranked[node] = True
            for consumer in consumers[node]:
                if is_ranked[consumer]:
                    continue
                ranks[consumer] = max(ranks[consumer], ranks[node] + 1)
                missing[consumer] -= 1
                if not missing[consumer]:
                    ready.append(consumer)
        if candidate < num_nodes and not is_ranked[candidate]:
            ready.append(candidate)
    return ranks
