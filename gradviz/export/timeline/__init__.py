"""A trace as viewers of timelines show it: slices on tracks, and arrows between them.

In: a trace. Out: values that `chrome`, `perfetto` and `speedscope` write, each in its
own format. Read `activity`, `slices`, `arguments`, `flows`, `tracks`; then `packets`
over `protobuf`, the bytes of Perfetto alone.
"""
