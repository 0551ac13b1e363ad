// What some device marked and the owner has not visited is found: visit it.
//
// Marks may be old: a device marks what it has not heard of. A warp owns 32 words of the bitmap of
// the own vertices at a time, lane i word i, so that no write to `visited` needs an atomic. The
// lanes then visit the 32 vertices of one word after the other. Bits after the last vertex are
// visited from the start.
#include "bfs/expand.cuh"
#include "devices/block_cyclic.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
merge_words(Search search, Rows out_rows, BlockCyclic cut, u32 level) {
  const u64 num_words = ((u64)out_rows.num_vertices + 31) / 32;
  const u32* received = (const u32*)cut.received;
  RowSectors found_sectors = {};
  for (u64 first : warp_stride((num_words + 31) / 32)) {
    const u64 mine = first * 32 + lane_id();
    u32 fresh = 0;
    if (mine < num_words) {
      for (u32 device = 0; device < cut.devices; device++)
        fresh |= received[2 * cut.stride * device + mine];
      const u32 visited = search.visited[mine];
      fresh &= ~visited;
      if (fresh) search.visited[mine] = visited | fresh;
    }
    for (u32 open = __ballot_sync(FULL_WARP, fresh != 0); open; open &= open - 1) {
      const u32 owner = (u32)__ffs((int)open) - 1;
      const u32 word = __shfl_sync(FULL_WARP, fresh, (int)owner);
      const u32 vertex = (u32)((first * 32 + owner) * 32) + lane_id();
      const bool found = word >> lane_id() & 1u;
      if (found) {
        reach(search, vertex, NO_VERTEX, level);
        found_sectors.add(out_rows, vertex);
      }
      append(search.queue, &search.control[CONTROL_QUEUE_END], 0, found, vertex);
    }
  }
  add_sectors(&search.control[CONTROL_FOUND_SECTORS], found_sectors);
}
