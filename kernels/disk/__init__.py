"""Steps whose tails stay on disk, on the CPU and on a GPU."""
