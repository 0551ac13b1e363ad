"""Up to 64 searches at once, one bit each: numba and CUDA."""
