// Levels of `count` positions from `first` on, after deep_levels; NO_VERTEX where none was reached.
//
// A thread owns a position. Of vertices that were not reached, only the byte is set.
#include "results/to_ids.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
deep_levels_to_ids(u32* out, Search search, ToIds to_ids, u64 first, u64 count) {
  for (u64 i : grid_stride(count)) {
    const u32 vertex = stored_at(to_ids, first + i);
    const bool reached = vertex != NO_VERTEX && search.levels[vertex] != NOT_REACHED;
    out[i] = reached ? search.pending[vertex] : NO_VERTEX;
  }
}
