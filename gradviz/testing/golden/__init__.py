"""Golden records: the effects of a backward, in a file that tests compare.

In: a trace, and a golden file. Out: the changes. Read `backward_record` (a trace
without all that differs from run to run), `golden_file` (its text), `record_changes`,
`same_backward` (the assertion).
"""
