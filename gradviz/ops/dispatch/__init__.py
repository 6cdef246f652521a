"""The way of a computation into a graph: plans, nodes, results, changes in place.

In: a function of arrays and the formulas of its gradients. Out: an op, which returns
variables and makes nodes. Read `plan`, `op_node`, `result`, then `differentiable`, the
door to all; `in_place`, `out` and `public` are doors beside it.
"""
