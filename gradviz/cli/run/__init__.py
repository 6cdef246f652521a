"""``gradviz run``: a program as ``python`` would run it, its passes recorded.

In: a command line of a program. Out: its own exit code, and a trace. Read `target`,
`program`, `command`; `workers`, `children` for more than one process.
"""
