"""Engines for CUDA devices: CuPy, the emulator, pinned memory, staging from disk."""
