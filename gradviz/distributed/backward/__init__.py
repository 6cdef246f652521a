"""The part of a distributed backward pass that runs on one worker.

In: a context, in which calls of the forward noted what they sent. Out: its gradients.
Read `functions`, `context`, `preparation`, `passes`, `dist_engine`.
"""
