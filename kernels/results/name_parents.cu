// Parents of `count` positions from `first` on, as positions; NO_VERTEX where there is none.
//
// A thread owns a position. Parents are few vertices, mostly, so that their positions stay in the
// cache. The host looks ids up, which are twice as long.
#include "results/names.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
name_parents(u32* out, Search search, Names names, u64 first, u64 count) {
  for (u64 i : grid_stride(count)) {
    const u32 vertex = stored_at(names, first + i);
    const u32 parent = vertex == NO_VERTEX ? NO_VERTEX : search.parents[vertex];
    out[i] = names.order && parent != NO_VERTEX ? names.order[parent] : parent;
  }
}
