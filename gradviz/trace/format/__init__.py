"""The trace file, and the trace in memory: their pieces, without any policy.

In: numbers and texts. Out: frames of bytes, and back. Read `frames`, each with a
checksum, `columns`, `definitions`, `table`; `model`, which says what was lost.
"""
