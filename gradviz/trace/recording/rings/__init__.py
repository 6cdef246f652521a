"""Recordings that keep only a part: the last one, or the steps that are unusual.

In: rows of many threads, as for any recording. Out: frames of the part that is kept,
when it is asked for. Read `ring`, `ring_writer`; then `odd_steps`, `step_ring`.
"""
