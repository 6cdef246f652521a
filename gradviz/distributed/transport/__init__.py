"""Transports: the ways of a message to another worker, behind one interface.

In: messages and their receiver. Out: answers, in futures, and failures of workers. Read
`base`, then a transport: `inproc` for threads, `local` for processes of one machine
(over `framed`, `link`, `frames`), `ray` for a cluster.
"""
