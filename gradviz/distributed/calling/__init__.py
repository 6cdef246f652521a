"""The calls between workers, from the caller's future to the function that ran.

In: messages from a transport. Out: answers, references to values that stay where they
are, and gradients on their way. Read `references`, `dist_autograd`, `calls`, `worker`.
"""
