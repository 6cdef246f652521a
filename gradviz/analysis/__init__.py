"""Answers of a trace, as plain values.

In: a `Trace`. Out: frozen values and NumPy columns, which `render` draws and `export`
writes. No engine, no device, no color is known here. Read the rooms in this order:
`tables`, `training`, `nodes`, `moments`, `queues`, `causes`, `graphs`, `changes`,
`memory`, `races`, `timelines`, `findings`.
"""
