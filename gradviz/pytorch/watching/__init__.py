"""Watching PyTorch's passes while they run.

In: hooks, a profiler, and one function of PyTorch that is replaced. Out: calls of a
`Probe`. Read `importing`; `watcher`, which has the function replaced; `profiler`,
`pass_reports`.
"""
