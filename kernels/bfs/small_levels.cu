// Many top-down levels in one launch of a single block, while the frontier stays small.
//
// Some graphs have thousands of levels of a few vertices each; a launch and a read-back for each
// level would cost more than its work. Thread 0 reads the queue's end between two barriers. The
// last one of a turn, and so of a level: after it no thread reads the old end or appends. The one
// that begins the next level: after it all threads see the same frontier. Both also order the
// writes and reads of the queue. Then all threads sum up the sectors of the frontier's rows, of
// which the kernels of large levels do not hear. Which lane owns a vertex is as in top_down, but
// short rows go through a cache (cached.cuh), and segments of all longer rows are shared by the
// warps of the block. Stops when the frontier is empty, when it is more work than one block should
// do, or after max_levels levels. Records where each level ends in the queue.
#include "bfs/cached.cuh"
#include "cuda/hubs.cuh"

#define SMALL_WARPS (SMALL_BLOCK_THREADS / 32u)

// The longer rows of a turn, listed as hubs are (hubs.cuh), by the threads that own them. A row's
// span and its vertex lie in its owner's part of the scratch memory, where short rows are done.
struct LongerRows {
  u32 owners[SMALL_BLOCK_THREADS], segments[SMALL_BLOCK_THREADS];
  u64 counts;
};

__device__ __forceinline__ void expand_longer(const Search& search, WorkTally& tally,
                                              const Scratch* scratch, const LongerRows& longer,
                                              const Rows& rows, u32 level) {
  const u64 num_segments = (u32)longer.counts;
  for (u64 i = warp_in_block(); i < num_segments; i += SMALL_WARPS) {
    const u64 number = hub_of_segment(longer.segments, i, 0, longer.counts >> 32);
    const u32 owner = longer.owners[number];
    const uint4* kept = &scratch[owner / 32].halves[4 * (owner & 31u)];
    const Span row = {kept[0].x | (u64)kept[0].y << 32, kept[0].z | (u64)kept[0].w << 32};
    expand_span(search, tally, rows, segment_span(row, i - longer.segments[number]), kept[1].x,
                level);
  }
}

extern "C" __global__ void __launch_bounds__(SMALL_BLOCK_THREADS, 1)
small_levels(Search search, Rows out_rows, u64 begin, u32 level, u32 max_levels, u64 max_vertices,
             u64 max_bytes) {
  __shared__ Scratch scratch[SMALL_WARPS];
  __shared__ LongerRows longer;
  __shared__ u64 queue_end, frontier_bytes, frontier_sectors[SECTOR_WORDS];
  u32 levels_run = 0;
  u64 turn = search.control[CONTROL_CACHE_TURNS];
  WorkTally tally = {};
  while (true) {
    if (threadIdx.x == 0) queue_end = *(volatile u64*)&search.control[CONTROL_QUEUE_END];
    if (threadIdx.x == 0) longer.counts = frontier_bytes = 0;
    if (threadIdx.x < SECTOR_WORDS) frontier_sectors[threadIdx.x] = 0;
    __syncthreads();
    const u64 end = queue_end;
    if (threadIdx.x == 0 && levels_run) search.level_ends[levels_run - 1] = (u32)end;
    RowSectors sectors = {};
    u64 bytes = 0;
    for (u64 i = begin + threadIdx.x; i < end; i += SMALL_BLOCK_THREADS)
      bytes += sectors.add(out_rows, search.queue[i]);
    add_sectors(frontier_sectors, sectors);
    add_total(&frontier_bytes, bytes);
    __syncthreads();
    if (begin == end || levels_run == max_levels || end - begin > max_vertices ||
        frontier_bytes > max_bytes + (end - begin) * SMALL_BYTES_PER_VERTEX)
      break;
    // Every warp has as many turns, because they share the cache.
    for (u64 first = 0; first * 32 < end - begin; first += SMALL_WARPS) {
      const u32 vertex = lane_vertex(search.queue, begin, end, first + warp_in_block());
      turn++;
      expand_heads(search, tally, out_rows, vertex, level);
      CachedScratch cached = {scratch[warp_in_block()], turn};
      const Span row = expand_short_tails(search, tally, cached, out_rows, vertex, level);
      if (row.begin < row.end) {
        uint4* kept = &scratch[warp_in_block()].halves[4 * lane_id()];
        kept[0] = {(u32)row.begin, (u32)(row.begin >> 32), (u32)row.end, (u32)(row.end >> 32)};
        kept[1].x = vertex;
        list_hub(longer.owners, longer.segments, &longer.counts, threadIdx.x, row);
      }
      if (__syncthreads_or(row.begin < row.end)) {
        expand_longer(search, tally, scratch, longer, out_rows, level);
        __syncthreads();
        if (threadIdx.x == 0) longer.counts = 0;
      }
    }
    begin = end;
    level = level_after(level);
    levels_run++;
  }
  add_work(search, tally);
  if (threadIdx.x < SECTOR_WORDS)
    search.control[CONTROL_FRONTIER_SECTORS + threadIdx.x] = frontier_sectors[threadIdx.x];
  if (threadIdx.x == 0) {
    search.control[CONTROL_LEVELS_RUN] = levels_run;
    search.control[CONTROL_CACHE_TURNS] = turn;
  }
}
