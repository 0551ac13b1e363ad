"""The first minutes with a GPU: what it is, whether all kernels are right on it, how fast it is."""
