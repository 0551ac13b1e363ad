// Parents of `count` positions from `first` on, as positions; NO_VERTEX where there is none.
//
// A thread owns a position. Parents are few vertices, mostly, so that their positions stay in the
// cache. The host looks ids up, which are twice as long.
#include "results/to_ids.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
parents_to_ids(u32* out, Search search, ToIds to_ids, u64 first, u64 count) {
  for (u64 i : grid_stride(count)) {
    const u32 vertex = stored_at(to_ids, first + i);
    const u32 parent = vertex == NO_VERTEX ? NO_VERTEX : search.parents[vertex];
    out[i] = to_ids.order && parent != NO_VERTEX ? to_ids.order[parent] : parent;
  }
}
