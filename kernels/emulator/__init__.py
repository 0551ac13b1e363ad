"""Run the CUDA sources on the CPU, for tests, for counting bytes, and for users without a GPU."""
