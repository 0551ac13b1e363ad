// Levels of `count` positions from `first` on, as bytes; bfs/finish.py does the same on the CPU.
//
// A thread owns four positions, whose levels it writes as one word. The order is read as it lies,
// levels at random, of which a sector holds 32.
#include "results/to_ids.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
levels_to_ids(u32* out, Search search, ToIds to_ids, u64 first, u64 count) {
  for (u64 w : grid_stride((count + 3) / 4)) {
    u32 word = 0;
    for (u32 k = 0; k < 4; k++) {
      const u32 vertex = 4 * w + k < count ? stored_at(to_ids, first + 4 * w + k) : NO_VERTEX;
      const u32 level = vertex == NO_VERTEX ? NOT_REACHED : search.levels[vertex];
      word |= level << 8 * k;
    }
    out[w] = word;
  }
}
