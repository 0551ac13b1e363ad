"""What all CUDA kernels share, and how their sources are put together and compiled."""
