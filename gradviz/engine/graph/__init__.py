"""The graph: nodes, edges, and the gradients that arrive at them.

In: functions and the edges between them. Out: nodes that an engine can run. Read the
modules in this order; each needs only those before it: `sync`, the seam through which
the engine takes threads, locks and clocks; `protocols`, `grad_mode`,
`removable_handle`, `anomaly`, `node`; `odd_fields`, which finds invalid fields after an
error; `input_buffer`; `basic_nodes`, the two ends of a pass: its roots and the leaves'
`.grad`; `validation`, `stream_rules`.
"""
