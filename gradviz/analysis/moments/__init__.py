"""Any moment of a trace: the state of the engine, and why a node ran then.

In: events in their order. Out: queues, threads and countdowns at a moment, and the
story of one node. Read `moment`, `engine_state`, `event_replay`, `story`,
`explanation`.
"""
