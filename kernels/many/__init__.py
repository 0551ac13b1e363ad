"""Up to 64 traversals at once, one bit each: numba and CUDA."""
