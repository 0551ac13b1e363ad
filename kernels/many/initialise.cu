// Forget the last traversal: nothing seen, found or levelled.
#include "many/many.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
many_initialise(Many many, u64 num_vertices) {
  for (u64 v : grid_stride(num_vertices)) many.seen[v] = many.front[v] = many.next[v] = 0;
  if (many.planes)
    for (u64 i : grid_stride(MANY_PLANES * num_vertices)) many.planes[i] = 0;
}
