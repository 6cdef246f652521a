"""Simulated devices: streams that work on their own, with a latency and a memory.

In: work for a stream. Out: the work done, in order, and errors that come late. Read
`work` and `latency`; `device_worker` and `stepping`, which carry work out; `layouts`
and `memory`; then `machine`, which has the devices.
"""
