"""Parts that commands share: options, settings, the trace they read, their output.

In: what a person typed. Out: the values that commands work with. Read `options`,
`trace_argument`, `output`, `notes`.
"""
