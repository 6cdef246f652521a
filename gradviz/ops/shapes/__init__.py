"""Ops that move elements and do not compute with them.

In: variables, shapes and indices. Out: views where that is possible, else copies. Read
`broadcasting`, `shape`, `slicing` and `indexing`, then any.
"""
