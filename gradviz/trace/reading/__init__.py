"""The way of a file back into a `Trace`, damaged or still being written.

In: bytes. Out: a `Trace`. Read `reader`, `assembly`, `following`.
"""
