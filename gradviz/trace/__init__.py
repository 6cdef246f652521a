"""Traces: reports of producers, their storage, and their reading.

In: calls of a `Probe`. Out: a file, and a `Trace` in memory. Read `events` and `probe`,
then the rooms: `reporting`, `format`, `recording`, `reading`, `checking`, `merging`.
"""
