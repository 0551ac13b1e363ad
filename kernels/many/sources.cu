// Add the sources, which lie in the queue, to the next frontier: source i gets bit i. A thread
// owns a source. One vertex may be several sources, so bits are set by atomics.
#include "many/many.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
many_sources(Many many, u64 num_sources) {
  for (u64 i : grid_stride(num_sources)) 
    atomicOr(&many.next_frontier[many.queue[i]], 1ull << i);
}
