"""Checking a program while it runs: does it order its work on streams?

In: what streams and threads do. Out: a report of each race as it happens. Read
`stream_handovers`, `thread_handovers`, `heard_locks`, `checker`.
"""
