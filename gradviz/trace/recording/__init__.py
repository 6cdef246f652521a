"""The way of an event from a probe call into a file.

In: calls of a `Probe` on many threads. Out: frames in a sink. Read `buffer`,
`node_rows`, `recorder`, `writer`, `sink`; the room `rings` for recordings
that keep only a part.
"""
