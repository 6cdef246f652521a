"""Faults of a trace, and costs that a program could save.

In: a trace. Out: findings, each with its line, its cost and how sure it is. Read
`check` for faults, `advice` for what could be better.
"""
