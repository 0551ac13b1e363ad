"""The inner loops: numba kernels, CUDA sources and the emulator that runs them."""
