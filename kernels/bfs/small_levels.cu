// Many top-down levels in one launch of a single block, while the frontier stays small.
//
// Some graphs have thousands of levels of a few vertices each; a launch and a read-back for each
// level would cost more than its work. Thread 0 reads the queue's end between two barriers. The
// last one of a turn, and so of a level: after it no thread reads the old end or appends. The one
// that begins the next level: after it all threads see the same frontier. Both also order the
// writes and reads of the queue. Then all threads look their rows up, and sum up their sectors, of
// which the kernels of large levels do not hear. Which lane owns a vertex is as in top_down, but
// all warps share even the smallest frontier, short rows go through a cache (cached.cuh), and
// segments of all longer rows are shared by the warps of the block. Where there are fewer segments
// than warps, those that have none claim neighbours that others decode: a claim takes longer than
// what leads to it. Stops when the frontier is empty, when it is more work than one block should
// do, or after max_levels levels. Records where each level ends in the queue.
#include "bfs/cached.cuh"
#include "cuda/hubs.cuh"

#define SMALL_WARPS (SMALL_BLOCK_THREADS / 32u)

// The longer rows of a turn, listed as hubs are (hubs.cuh), by the threads that own them. A row's
// span and its vertex lie in its owner's part of the scratch memory, where short rows are done.
struct LongerRows {
  u32 owners[SMALL_BLOCK_THREADS], segments[SMALL_BLOCK_THREADS];
  u64 counts;
  // What each warp has decoded, in the `listed` part of its scratch memory, and whose row it is.
  u32 num_decoded[SMALL_WARPS], parents[SMALL_WARPS];
};

struct OwnedSpan {
  Span span;
  u32 vertex;
};

// The lane's row in a turn of the block through the frontier.
__device__ __forceinline__ OwnedSpan lane_row(const Search& search, const Rows& rows, u64 begin,
                                              u64 end, u64 turn, u32 each) {
  const u32 vertex =
      lane_vertex(search.queue, begin, end, turn * SMALL_WARPS + warp_in_block(), each);
  return {lane_span(rows, vertex), vertex};
}

__device__ __forceinline__ OwnedSpan longer_segment(const Scratch* scratch,
                                                    const LongerRows& longer, u64 i) {
  const u64 number = hub_of_segment(longer.segments, i, 0, longer.counts >> 32);
  u32 vertex;
  const Span row = kept_row(scratch, longer.owners[number], vertex);
  return {segment_span(row, i - longer.segments[number]), vertex};
}

// Decode the next chunk of a segment into the warp's scratch memory.
__device__ __forceinline__ void decode_for_others(const Search& search, Scratch& scratch,
                                                  LongerRows& longer, const Rows& rows,
                                                  Cursor& cursor) {
  const u32 warp = warp_in_block();
  Decoded decoded = {};
  if (!cursor.done() && !decode_chunk<32>(decoded, cursor, rows, true)) report_damage(search);
  u32 total;
  u32 place = first_listed((u32)__popc(decoded.present), total);
  u32* ids = (u32*)scratch.listed;
#pragma unroll
  for (u32 k = 0; k < 4; k++)
    if (decoded.present >> k & 1u) ids[place++] = decoded.ids[k];
  if (lane_id() == 0) longer.num_decoded[warp] = total;
}

// Expand the segments of the longer rows from `first` on, of which there are at most half as many
// as warps. All threads of the block call this together. A barrier lies between decoding and
// claiming, and between claiming and decoding what is next.
__device__ __forceinline__ void expand_together(const Search& search, WorkTally& tally,
                                                Scratch* scratch, LongerRows& longer,
                                                const Rows& rows, u64 first, u32 num_segments,
                                                u32 level) {
  const u32 warp = warp_in_block(), sharing = SMALL_WARPS / num_segments;
  const u32 decoder = warp % num_segments, share = warp / num_segments;
  Cursor cursor = {};
  if (warp < num_segments) {
    const OwnedSpan segment = longer_segment(scratch, longer, first + warp);
    cursor = start_cursor<32>(segment.span);
    if (lane_id() == 0) longer.parents[warp] = segment.vertex;
  }
  while (__syncthreads_or(!cursor.done())) {
    if (warp < num_segments) decode_for_others(search, scratch[warp], longer, rows, cursor);
    __syncthreads();
    if (share < sharing) {
      const u32* decoded = (const u32*)scratch[decoder].listed;
      const u32 total = longer.num_decoded[decoder], end = total * (share + 1) / sharing;
      const u32 from = total * share / sharing + 2 * lane_id();
      u32 ids[2], present = 0;
#pragma unroll
      for (u32 k = 0; k < 2; k++) {
        ids[k] = from + k < end ? decoded[from + k] : 0;
        present |= (u32)(from + k < end) << k;
      }
      claim(search, tally, rows, present, ids, longer.parents[decoder], level);
    }
  }
}

__device__ __forceinline__ void expand_longer(const Search& search, WorkTally& tally,
                                              Scratch* scratch, LongerRows& longer,
                                              const Rows& rows, u32 level) {
  const u64 num_segments = (u32)longer.counts, last = num_segments % SMALL_WARPS;
  const u64 apart = num_segments - (last <= SMALL_WARPS / 2 ? last : 0);
  for (u64 i = warp_in_block(); i < apart; i += SMALL_WARPS) {
    const OwnedSpan segment = longer_segment(scratch, longer, i);
    expand_span(search, tally, rows, segment.span, segment.vertex, level);
  }
  if (apart < num_segments)
    expand_together(search, tally, scratch, longer, rows, apart, (u32)last, level);
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
    // Every warp has as many turns, because they share the cache. Rows are looked up from the last
    // turn to the first, whose rows are kept: most levels of a road have no other.
    const u64 share = (end - begin + SMALL_WARPS - 1) / SMALL_WARPS, turns = (share + 31) / 32;
    const u32 each = share < 32 ? (u32)share : 32;
    RowSectors sectors = {};
    u64 bytes = 0;
    OwnedSpan own = {};
    for (u64 i = turns; i--;) {
      own = lane_row(search, out_rows, begin, end, i, each);
      sectors.add(out_rows, own.span);
      bytes += own.span.end - own.span.begin;
    }
    add_sectors(frontier_sectors, sectors);
    add_total(&frontier_bytes, bytes);
    __syncthreads();
    if (begin == end || levels_run == max_levels || end - begin > max_vertices ||
        frontier_bytes > max_bytes + (end - begin) * SMALL_BYTES_PER_VERTEX)
      break;
    for (u64 i = 0; i < turns; i++) {
      if (i) own = lane_row(search, out_rows, begin, end, i, each);
      turn++;
      expand_heads(search, tally, out_rows, own.vertex, level);
      CachedScratch cached = {scratch[warp_in_block()], turn};
      const Span row =
          expand_short_tails(search, tally, cached, out_rows, own.span, own.vertex, level);
      if (row.begin < row.end) {
        keep_row(scratch, threadIdx.x, row, own.vertex);
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
