// Levels of `count` positions from `first` on, as bytes; the twin of _name_few_levels of bfs/finish.py.
//
// A thread owns four positions, whose levels it writes as one word. Ranks are read in order, levels
// at random, of which a sector holds 32.
#include "results/names.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
name_levels(u32* out, Search search, Names names, u64 first, u64 count) {
  for (u64 w : grid_stride((count + 3) / 4)) {
    u32 word = 0;
    for (u32 k = 0; k < 4; k++) {
      const u32 vertex = 4 * w + k < count ? stored_at(names, first + 4 * w + k) : NO_VERTEX;
      const u32 level = vertex == NO_VERTEX ? NOT_REACHED : search.levels[vertex];
      word |= level << 8 * k;
    }
    out[w] = word;
  }
}
