// Visit the distinct sources at the start of the queue.
//
// A lane owns a source. Its bit is set by an atomic, because sources may share a word of the
// bitmap.
#include "bfs/expand.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
visit_sources(Search search, Rows out_rows, u64 num_sources) {
  for (u64 first : warp_stride((num_sources + 31) / 32)) {
    const u64 i = first * 32 + lane_id();
    RowSectors sectors = {};
    if (i < num_sources) {
      const u32 source = search.queue[i];
      atomicOr(&search.visited[source >> 5], 1u << (source & 31u));
      reach(search, source, source, 0);
      sectors.add(out_rows, source);
    }
    add_sectors(&search.control[CONTROL_FOUND_SECTORS], sectors);
    add_total(&search.control[CONTROL_QUEUE_END], i < num_sources);
  }
}
