"""Differentiable operations on arrays and variables.

`recording` is the door through which they become part of a graph; the families of ops
come after it, and each uses only those before it: `shapes`, `elementwise`,
`reductions`, `algebra`, `layers`. `table` gathers what is public of them all.
"""
