"""Arrays of simulated devices, filled once their stream has worked.

In: calls of NumPy's functions. Out: arrays, and work for a stream. Read `device_array`;
`operands`, the arguments of a call; `inference` and `functions`, its result foretold;
`kernels`, `numpy_calls`, `indexing` and `copies`, the launches; then `array`.
"""
