"""Reductions: fewer elements out than in, and ops that are made from those.

In: variables and dimensions. Out: sums, extremes, sorted and scattered elements. Read
`reduction`, `extremes` and `scatter`, then any.
"""
