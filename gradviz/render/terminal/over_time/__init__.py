"""Views over time, in a terminal.

In: lanes, queues, memory, paths and events of `analysis`. Out: lines on a console. Read
`curves`, `queues`, `memory`; then `timeline`, `utilization`, `critical_path`,
`events`, and `simulation` of a pass that is changed.
"""
