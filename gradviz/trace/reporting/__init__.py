"""Facts that producers put into their reports: numbers, names and lines of the program.

In: nodes, hooks, streams and threads of a program. Out: their ids, the names of hooks,
lines of the program, and the hand-overs between threads that are worth a report. Read
`ids`, `location`, `hook_names`, `made_streams`, `thread_knowledge`.
"""
