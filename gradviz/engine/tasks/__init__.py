"""One backward pass: its nodes, the dependencies of each, and its streams.

In: roots. Out: a `GraphTask`, and queues of ready nodes. Read the modules in this
order; each needs only those before it, and `gradviz.ready_order`: `stream_mismatch`,
`pass_streams`, `ready_queue`, `outcome`, `graph_task`, `device_queues`,
`passes_under_way`, `discovery`, `policies`.
"""
