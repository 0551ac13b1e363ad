// Prefix sums of counts, in two steps that share no block: each tile of SCAN_TILE counts by a scan
// of its block (PREFIX_TILES), then the sums of all tiles by one block (PREFIX_SUMS), which also
// says how many there are in all. Where an item writes is the sum of what both gave it. A tile
// belongs to one block, so nothing is atomic. Axes: PHASE.
#include "methods/emit.cuh"

namespace AXIS_SPACE {

enum Phase { PREFIX_TILES, PREFIX_SUMS };

extern "C" __global__ void __launch_bounds__(SCAN_TILE)
AXIS_ENTRY(MethodState t, u64 count) {
  __shared__ BlockScratch scratch;
  const u64 num_tiles = (count + SCAN_TILE - 1) / SCAN_TILE;
  u64 total;
  if (AXIS_PHASE == PREFIX_TILES) {
    for (u64 tile : tiles(count)) {
      const u64 i = tile * SCAN_TILE + threadIdx.x;
      const u64 before = scan_block(scratch, i < count ? t.counts[i] : 0, total);
      if (i < count) t.counts[i] = (u32)before;
      if (threadIdx.x == 0) t.sums[tile] = (u32)total;
    }
  } else {
    u64 sum = 0;
    for (u64 first = 0; first < num_tiles; first += SCAN_TILE) {
      const u64 i = first + threadIdx.x;
      const u64 before = scan_block(scratch, i < num_tiles ? t.sums[i] : 0, total);
      if (i < num_tiles) t.sums[i] = (u32)(sum + before);
      sum += total;
    }
    if (threadIdx.x == 0) t.words[WORD_QUEUE_END] = sum;
  }
}

}  // namespace
using AXIS_SPACE::AXIS_ENTRY;
