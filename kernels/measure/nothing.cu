// Do nothing: what a launch takes.
#include "cuda/common.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
measure_nothing() {}
