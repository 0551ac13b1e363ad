// Levels that have no room in a byte, after the search: where a vertex lies in the queue says on
// which level it is. They take the place of the pending list, which nobody needs any more.
//
// A launch does the levels from `first_level` on, which begin at `begin` and end at the recorded
// level ends. A thread owns a place in the queue, and so its vertex, and finds the first end behind
// it by bisection.
#include "cuda/common.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
deep_levels(Search search, u64 begin, u32 first_level, u32 num_levels) {
  const u64 end = search.level_ends[num_levels - 1];
  for (u64 i : grid_stride(end - begin)) {
    u32 low = 0, high = num_levels - 1;
    while (low < high) {
      const u32 middle = (low + high) / 2;
      if (search.level_ends[middle] > begin + i) high = middle;
      else low = middle + 1;
    }
    search.pending[search.queue[begin + i]] = first_level + low;
  }
}
