// Many top-down levels in one launch of a single block, while the frontier stays small.
//
// Some graphs have thousands of levels of a few vertices each; a launch and a read-back for each
// level would cost more than its work. Thread 0 reads the queue's end between two barriers. The
// barrier that ends a level: after it no thread reads the old end or appends. The barrier that
// begins the next level: after it all threads see the same frontier. Both also order the writes
// and reads of the queue. Which lane owns a vertex is as in top_down, but short rows go through a
// cache (cached.cuh); a warp takes its hubs, segment by segment. Stops when the frontier is empty,
// when it is too large for one block, or after max_levels levels. Records where each level ends in
// the queue.
#include "bfs/cached.cuh"

#define SMALL_WARPS (SMALL_BLOCK_THREADS / 32u)

extern "C" __global__ void __launch_bounds__(SMALL_BLOCK_THREADS, 1)
small_levels(Search search, Rows out_rows, u64 begin, Cost base, u32 level, u32 max_levels,
             u64 max_vertices, u64 max_bytes) {
  __shared__ Scratch scratch[SMALL_WARPS];
  __shared__ u64 queue_end;
  __shared__ Cost total;
  u32 levels_run = 0;
  u64 turn = search.control[CONTROL_CACHE_TURNS];
  while (true) {
    if (threadIdx.x == 0) {
      queue_end = *(volatile u64*)&search.control[CONTROL_QUEUE_END];
      total.bytes = *(volatile u64*)&search.control[CONTROL_FOUND_BYTES];
      total.skippable = *(volatile u64*)&search.control[CONTROL_FOUND_SKIPPABLE];
    }
    __syncthreads();
    const u64 end = queue_end;
    const Cost cost_end = total;
    if (threadIdx.x == 0 && levels_run) search.level_ends[levels_run - 1] = (u32)end;
    if (begin == end || levels_run == max_levels || end - begin > max_vertices ||
        cost_end.bytes - base.bytes > max_bytes + (end - begin) * SMALL_BYTES_PER_VERTEX)
      break;
    Tally tally = {};
    // Every warp has as many turns, because they share the cache.
    for (u64 first = 0; first * 32 < end - begin; first += SMALL_WARPS) {
      const u32 vertex = lane_vertex(search.queue, begin, end, first + warp_in_block());
      turn++;
      expand_heads(search, tally, out_rows, vertex, level);
      CachedScratch cached = {scratch[warp_in_block()], turn};
      const Span hub = expand_tails(search, tally, cached, out_rows, vertex, level);
      for (u32 lanes = __ballot_sync(FULL_WARP, hub.begin < hub.end); lanes; lanes &= lanes - 1) {
        const int owner = __ffs((int)lanes) - 1;
        const u32 parent = __shfl_sync(FULL_WARP, vertex, owner);
        const Span row = share_span(hub, owner);
        for (u64 segment = 0; segment * SEGMENT_BYTES < row.end - row.begin; segment++)
          expand_span(search, tally, out_rows, segment_span(row, segment), parent, level);
      }
    }
    add_tally(search, tally);
    begin = end;
    base = cost_end;
    level++;
    levels_run++;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    search.control[CONTROL_LEVELS_RUN] = levels_run;
    search.control[CONTROL_CACHE_TURNS] = turn;
    search.control[CONTROL_FRONTIER_BYTES_BASE] = base.bytes;
    search.control[CONTROL_FRONTIER_SKIPPABLE_BASE] = base.skippable;
  }
}
