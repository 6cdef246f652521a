"""Recording of a program: joins engine, PyTorch and trace.

In: a block, a function, a program or a test to record. Out: a `Recording`, and its
trace. Read `recording_options`, `session`, then who else begins one:
`recorded_function`, `recorded_tests`, `flight_recorder`, `standby`.
"""
