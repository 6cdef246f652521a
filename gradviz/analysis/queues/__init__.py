"""Ready queues over time: how long they were, and how long tasks waited in them.

In: the tables. Out: waits, lengths, contents at a moment.
Read `queues_over_time`, `queue_activity`, `queue_contents`.
"""
