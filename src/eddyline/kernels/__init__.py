"""Numba kernels over flat arrays and raw column buffers; each has a plain-Python twin in its own file."""
