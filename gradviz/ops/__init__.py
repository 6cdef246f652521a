"""Differentiable operations on arrays and variables.

In: variables, arrays and numbers. Out: variables, with the nodes of a graph behind
them. Read `conventions`, `variables`, and `dispatch`, the door through which ops become
part of a graph; then the families, each of which uses only those before it: `shapes`,
`elementwise`, `reductions`, `algebra`, `layers`; then `table`, which gathers all public
names.
"""
