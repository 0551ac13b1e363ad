// Clear what the last search left: the words of all vertices, and the planes of their levels.
// Each thread owns the items it writes.
#include "many/many.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
many_initialise(Many many, u64 num_vertices) {
  for (u64 v : grid_stride(num_vertices))
    many.seen[v] = many.frontier[v] = many.next_frontier[v] = 0;
  if (many.planes)
    for (u64 i : grid_stride(MANY_PLANES * num_vertices)) many.planes[i] = 0;
}
