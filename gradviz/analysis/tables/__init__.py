"""Events joined into rows, for all other rooms of `analysis`.

In: the columns of a trace. Out: one row for each node that ran, each wait in a queue,
each pass, call, kernel and message. Read `spans`, `executions`, `queue_waits`,
`worker_parts`; `passes`, which also finds those that ``--pass`` names; then the rest.
"""
