"""Ops on each element.

In: variables and numbers that broadcast. Out: variables of the broadcast shape. Read
`arithmetic`, `selection` and `transcendental`, then any.
"""
