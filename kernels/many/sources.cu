// Find the sources that lie in the queue, one bit each; one vertex may be several of them.
#include "many/many.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
many_sources(Many many, u64 num_sources) {
  for (u64 i : grid_stride(num_sources)) atomicOr(&many.next[many.queue[i]], 1ull << i);
}
