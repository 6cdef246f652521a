"""Memory of backward passes: its size, its purpose, and its lifetime.

In: the tables. Out: bytes over time, the peak and its holders, what would lower it.
Read `allocations`, `levels`, `memory_use`, `savings`.
"""
