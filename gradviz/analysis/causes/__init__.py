"""Causes and effects in a pass: the reasons for its duration, and ways to change it.

In: the tables. Out: the critical path, utilization, passes simulated with other times.
Read `thread_lanes`, `causal_graph`, `critical_path`, `recorded_work`, `simulation`.
"""
