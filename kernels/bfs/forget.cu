// Forget what was found after the level of a target: one launch may have run many levels.
//
// These vertices are the queue from `begin` on. A thread owns one of them. Others share its word of
// the bitmap, so the bit is cleared by an atomic, and the word with its level, which volatile
// declares.
#include "cuda/common.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
forget(Search search, u64 begin) {
  const u64 end = search.control[CONTROL_QUEUE_END];
  for (u64 i : grid_stride(end - begin)) {
    const u32 vertex = search.queue[begin + i];
    *(volatile u8*)&search.levels[vertex] = NOT_REACHED;
    atomicAnd(&search.visited[vertex >> 5], ~(1u << (vertex & 31u)));
#if WITH_PARENTS
    search.parents[vertex] = NO_VERTEX;
#endif
  }
}
