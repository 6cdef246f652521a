"""Reconstruction of the work of PyTorch's engine from observations.

In: a graph, and which nodes ran when. Out: the events of the pass, marked as inferred.
Read `watched_pass`, `seen_queues`, `tasks`, `pass_events`.
"""
