"""The threads that run nodes, and the end of a pass.

In: tasks from a ready queue. Out: gradients in buffers, hooks called, a result or an
error. Read the modules in this order; each needs only those before it: `worker`,
`hook_calls`, `handover`, `evaluation`, `completion`, `thread_main`; `thread_pool`, for
deeply nested reentrant passes; `device_threads`, `execution`; and for users who look at
an engine, `inspection`, `tracebacks`.
"""
