// Clear what the last search left: levels, parents, the bitmap, the control words
// and the cache.
//
// Each thread owns the items it writes. The bits after the last vertex are set to visited, so that
// no kernel has to test for them.
#include "cuda/common.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
initialise(Search search, u64 num_vertices) {
  for (u64 w : grid_stride((num_vertices + 3) / 4)) ((u32*)search.levels)[w] = NO_VERTEX;
#if WITH_PARENTS
  for (u64 v : grid_stride(num_vertices)) search.parents[v] = NO_VERTEX;
#endif
  for (u64 w : grid_stride((num_vertices + 31) / 32)) {
    const bool cut = w == num_vertices / 32;
    search.visited[w] = cut ? 0xffffffffu << (u32)(num_vertices & 31) : 0;
  }
  for (u64 i : grid_stride(CONTROL_WORDS)) search.control[i] = 0;
  for (u64 i : grid_stride(search.cache_sectors)) search.cache_tags[i] = 0;
}
