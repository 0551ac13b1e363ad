// Top-down expansion of rows, for kernels of large and of small levels.
//
// A vertex belongs to the lane whose atomicOr sets its bit in `claimed`. Only that lane writes its
// level and parent and appends it to the queue, so those writes need no atomics.
#ifndef OOCBFS_EXPAND_CUH
#define OOCBFS_EXPAND_CUH
#include "cuda/decode.cuh"
#include "cuda/staged.cuh"

// What a lane sums up and adds to the control words once.
struct WorkTally {
  u32 edges, claims_lost;
  u32 short_rows, long_rows, hub_rows;

  __device__ __forceinline__ void add_found(const Rows&, u32) {}   // small_levels does that itself
};
struct Tally : WorkTally {
  RowSectors found;   // of the rows of what it found

  __device__ __forceinline__ void add_found(const Rows& rows, u32 vertex) {
    found.add(rows, vertex);
  }
};

__device__ __forceinline__ void add_work(const Search& search, const WorkTally& tally) {
  add_total(&search.control[CONTROL_EDGES], tally.edges);
  add_total(&search.control[CONTROL_CLAIMS_LOST], tally.claims_lost);
#if COUNT_ROWS
  add_total(&search.control[CONTROL_SHORT_ROWS], tally.short_rows);
  add_total(&search.control[CONTROL_LONG_ROWS], tally.long_rows);
  add_total(&search.control[CONTROL_HUB_ROWS], tally.hub_rows);
#endif
}

__device__ __forceinline__ void add_tally(const Search& search, const Tally& tally) {
  add_sectors(&search.control[CONTROL_FOUND_SECTORS], tally.found);
  add_work(search, tally);
}

__device__ __forceinline__ void reach(const Search& search, u32 vertex, u32 parent, u32 level) {
#if WITH_PARENTS
  search.parents[vertex] = parent;
#endif
  // Volatile: top_down_staged reads levels meanwhile.
  *(volatile u8*)&search.levels[vertex] = (u8)level;
}

// Whether a neighbour was visited when the level began.
__device__ __forceinline__ bool is_reached(const Search& search, u32 id) {
#if BLOCK_CYCLIC
  return test_bit(search.reached, id);
#else
  return test_bit(search.visited, id);
#endif
}

// Claim those of every lane's neighbours whose bit is set in `present`. All lanes of the warp call
// this together. A lane's reads are under way together, then its atomics, then what it writes.
// Those of its neighbours that lie side by side in one word of the bitmap share an atomic: the
// last's.
template <class Tally, u32 COUNT>
__device__ __forceinline__ void claim(const Search& search, Tally& tally, const Rows& rows,
                                      u32 present, const u32 (&ids)[COUNT], u32 parent,
                                      u32 level) {
  u32 open = 0, fresh = 0, bits[COUNT], before[COUNT];
  tally.edges += (u32)__popc(present);
#pragma unroll
  for (u32 k = 0; k < COUNT; k++) {
    const bool active = present >> k & 1u;
    if (active && ids[k] >= rows.num_ids) report_damage(search);
    // Most neighbours are visited, and a read is cheaper than the atomic. A read that comes too
    // early costs only that atomic.
    if (active && ids[k] < rows.num_ids)
      open |= (~*(volatile u32*)&search.claimed[ids[k] >> 5] >> (ids[k] & 31u) & 1u) << k;
  }
#pragma unroll
  for (u32 k = 0; k < COUNT; k++) {
    bits[k] = (open >> k & 1u) << (ids[k] & 31u);
    if (k && ids[k - 1] >> 5 == ids[k] >> 5) {
      bits[k] |= bits[k - 1];
      bits[k - 1] = 0;
    }
  }
#pragma unroll
  for (u32 k = 0; k < COUNT; k++)
    before[k] = bits[k] ? atomicOr(&search.claimed[ids[k] >> 5], bits[k]) : 0;
#pragma unroll
  for (u32 i = 0; i < COUNT; i++) {  // counting down would not be unrolled, and take a stack
    const u32 k = COUNT - 1 - i;
    if (k + 1 < COUNT && ids[k] >> 5 == ids[k + 1] >> 5) before[k] = before[k + 1];
    fresh |= (open >> k & ~(before[k] >> (ids[k] & 31u)) & 1u) << k;
  }
  tally.claims_lost += (u32)__popc(open & ~fresh);
#if !BLOCK_CYCLIC   // else its owner does this, when it is told: see devices/merge_words.cu
#pragma unroll
  for (u32 k = 0; k < COUNT; k++)
    if (fresh >> k & 1u) {
      reach(search, ids[k], parent, level);
      tally.add_found(rows, ids[k]);
    }
  append(search.queue, &search.control[CONTROL_QUEUE_END], 0, fresh, ids);
#endif
}

// One staged row per lane.
template <class Tally>
__device__ __forceinline__ void expand_staged(const Search& search, Tally& tally, StagedRow row,
                                              const Rows& rows, u32 parent, u32 level) {
  while (__any_sync(FULL_WARP, !row.done())) {
    u32 ids[4], present = 0;
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
      bool whole = false;
      ids[k] = 0;
      if (!row.done()) {
        ids[k] = row.next(whole, rows.num_ids);
        if (!whole) report_damage(search);
      }
      present |= (u32)whole << k;
    }
    claim(search, tally, rows, present, ids, parent, level);
  }
}

// One independently decodable span by the whole warp.
template <class Tally>
__device__ __forceinline__ void expand_span(const Search& search, Tally& tally, const Rows& rows,
                                            Span span, u32 parent, u32 level) {
  decode_span(
      rows, span, [&] { report_damage(search); },
      [&](const Decoded& decoded) {
        claim(search, tally, rows, decoded.present, decoded.ids, parent, level);
      });
}

// Head of one frontier vertex per lane; NO_VERTEX takes no part.
template <class Tally>
__device__ __forceinline__ void expand_heads(const Search& search, Tally& tally, const Rows& rows,
                                             u32 vertex, u32 level) {
  const u32 heads[1] = {vertex < rows.num_vertices ? rows.heads[vertex] : NO_VERTEX};
  claim(search, tally, rows, (u32)(heads[0] != NO_VERTEX), heads, vertex, level);
}

// One short row per lane. Empty spans take no part.
__device__ __forceinline__ void expand_short(const Search& search, Tally& tally, Scratch& scratch,
                                             const Rows& rows, Span span, u32 parent, u32 level) {
  if (!__any_sync(FULL_WARP, span.begin < span.end)) return;
  expand_staged(search, tally, stage_short(scratch, rows, span), rows, parent, level);
}

// The row of a lane's vertex; an empty one if that is NO_VERTEX.
__device__ __forceinline__ Span lane_span(const Rows& rows, u32 vertex) {
  const Span none = {0, 0};
  return vertex < rows.num_vertices ? readable_span(rows, vertex) : none;
}

// Short tail of one frontier vertex per lane, if it has one. Longer ones are left to the caller:
// returns the span of the lane's row, or an empty one. The scratch memory says how short rows are
// staged: see cached.cuh for another one.
template <class Tally, class Staging>
__device__ __forceinline__ Span expand_short_tails(const Search& search, Tally& tally,
                                                   Staging& scratch, const Rows& rows, Span span,
                                                   u32 vertex, u32 level) {
  const Span none = {0, 0};
  const u64 length = span.end - span.begin;
  const bool is_longer = length > SHORT_BYTES, is_hub = length > SEGMENT_BYTES;
  tally.short_rows += length && !is_longer;
  tally.long_rows += is_longer && !is_hub;
  tally.hub_rows += is_hub;
  expand_short(search, tally, scratch, rows, is_longer ? none : span, vertex, level);
  return is_longer ? span : none;
}

// A row that waits for a warp of the block lies in its owner's part of the scratch memory.
__device__ __forceinline__ void keep_row(Scratch* scratch, u32 owner, Span row, u32 vertex) {
  uint4* kept = &scratch[owner / 32].halves[4 * (owner & 31u)];
  kept[0] = {(u32)row.begin, (u32)(row.begin >> 32), (u32)row.end, (u32)(row.end >> 32)};
  kept[1].x = vertex;
}
__device__ __forceinline__ Span kept_row(const Scratch* scratch, u32 owner, u32& vertex) {
  const uint4* kept = &scratch[owner / 32].halves[4 * (owner & 31u)];
  vertex = kept[1].x;
  return {kept[0].x | (u64)kept[0].y << 32, kept[0].z | (u64)kept[0].w << 32};
}

// The threads of the block whose long row waits. Nobody may add before thread 0 has cleared it.
struct LongRows {
  u32 count;
  u32 owners[BLOCK_THREADS];

  __device__ __forceinline__ void clear() {
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
  }
};

// Tail of one frontier vertex per lane, but for hubs, which are left to the caller. All threads of
// the block call this together, since its warps share the long rows: where ids carry locality,
// those of one warp may all be long.
__device__ __forceinline__ Span expand_tails(const Search& search, Tally& tally, Scratch* scratch,
                                             LongRows& waiting, const Rows& rows, u32 vertex,
                                             u32 level) {
  const Span none = {0, 0};
  const Span span = expand_short_tails(search, tally, scratch[warp_in_block()], rows,
                                       lane_span(rows, vertex), vertex, level);
  const bool is_hub = span.end - span.begin > SEGMENT_BYTES;
  const bool is_long = span.begin < span.end && !is_hub;
  if (is_long) {
    keep_row(scratch, threadIdx.x, span, vertex);
    waiting.owners[atomicAdd(&waiting.count, 1u)] = threadIdx.x;
  }
  if (__syncthreads_or(is_long)) {
    for (u32 i = warp_in_block(); i < waiting.count; i += BLOCK_THREADS / 32) {
      u32 parent;
      const Span row = kept_row(scratch, waiting.owners[i], parent);
      expand_span(search, tally, rows, row, parent, level);
    }
    __syncthreads();
    waiting.clear();
  }
  return is_hub ? readable_span(rows, vertex) : none;
}

#endif
