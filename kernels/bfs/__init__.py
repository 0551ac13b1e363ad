"""One search from one source: the level loop, both directions, numba and CUDA."""
