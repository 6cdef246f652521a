"""Passes together: those of one shape, steps of a training, usual times, totals.

In: the tables. Out: shapes, steps, usual times, summary. Read `pass_shapes`,
`usual_times`, `steps`, `summary`.
"""
