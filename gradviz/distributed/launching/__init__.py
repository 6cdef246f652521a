"""The start of a program's workers: as threads, processes or actors of Ray.

In: a function and how many workers run it. Out: their return values, or the failure of
the first that failed. Read `threads`, `processes`, `actors`, `launch`.
"""
