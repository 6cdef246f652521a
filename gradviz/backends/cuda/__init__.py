"""CUDA devices, by way of CuPy.

In: calls of NumPy's functions on arrays of CuPy. Out: arrays, streams, and reports of
kernels. Read `cuda_array`, `cuda_indices`; `cuda_memory`, `cuda_streams`,
`cuda_reports`; then `backend`, which only imports CuPy when first asked.
"""

from gradviz.backends.cuda.backend import CudaBackend as CudaBackend
