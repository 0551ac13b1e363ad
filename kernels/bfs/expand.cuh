// Top-down expansion of rows, for kernels of large and of small levels.
//
// A vertex belongs to the lane whose atomicOr sets its bit in `claimed`. Only that lane writes its
// level and parent and appends it to the queue, so those writes need no atomics.
#ifndef OOCBFS_EXPAND_CUH
#define OOCBFS_EXPAND_CUH
#include "cuda/decode.cuh"
#include "cuda/staged.cuh"

// What a lane sums up and adds to the control words once.
struct Tally {
  u32 sectors, skippable_sectors;   // of Cost, which has whole sectors
  u32 edges, claims_lost;
  u32 short_rows, long_rows, hub_rows;

  __device__ __forceinline__ void add_found(const Rows& rows, u32 vertex) {
    Cost cost = {};
    cost.add(rows, vertex);
    sectors += (u32)(cost.bytes / 32);
    skippable_sectors += (u32)(cost.skippable / 32);
  }
};

__device__ __forceinline__ void add_tally(const Search& search, const Tally& tally) {
  add_cost(&search.control[CONTROL_FOUND_BYTES],
           {32ull * tally.sectors, 32ull * tally.skippable_sectors});
  add_total(&search.control[CONTROL_EDGES], tally.edges);
  add_total(&search.control[CONTROL_CLAIMS_LOST], tally.claims_lost);
#if COUNT_ROWS
  add_total(&search.control[CONTROL_SHORT_ROWS], tally.short_rows);
  add_total(&search.control[CONTROL_LONG_ROWS], tally.long_rows);
  add_total(&search.control[CONTROL_HUB_ROWS], tally.hub_rows);
#endif
}

__device__ __forceinline__ void reach(const Search& search, u32 vertex, u32 parent, u32 level) {
  // Volatile: top_down_staged reads levels meanwhile.
  *(volatile u8*)&search.levels[vertex] = (u8)level_byte(level);
#if WITH_PARENTS
  search.parents[vertex] = parent;
#endif
}

// Whether a neighbour was visited when the level began.
__device__ __forceinline__ bool is_reached(const Search& search, u32 id) {
#if DEALT
  return test_bit(search.reached, id);
#else
  return test_bit(search.visited, id);
#endif
}

// Claim one neighbour per active lane. All lanes of the warp call this together.
__device__ __forceinline__ void claim(const Search& search, Tally& tally, const Rows& rows,
                                      bool active, u32 vertex, u32 parent, u32 level) {
  bool fresh = false;
  tally.edges += active;
  if (active && vertex >= rows.num_ids) report_damage(search);
  if (active && vertex < rows.num_ids) {
    const u32 bit = 1u << (vertex & 31u);
    u32* word = &search.claimed[vertex >> 5];
    // Most neighbours are visited, and a read is cheaper than the atomic. A read that comes too
    // early costs only that atomic.
    if (!(*(volatile u32*)word & bit)) {
      fresh = !(atomicOr(word, bit) & bit);
      tally.claims_lost += !fresh;
    }
  }
#if !DEALT   // else its owner does this, when it is told: see devices/unite_words.cu
  if (fresh) {
    reach(search, vertex, parent, level);
    tally.add_found(rows, vertex);
  }
  append(search.queue, &search.control[CONTROL_QUEUE_END], 0, fresh, vertex);
#endif
}

// One staged row per lane.
__device__ __forceinline__ void expand_staged(const Search& search, Tally& tally, StagedRow row,
                                              const Rows& rows, u32 parent, u32 level) {
  while (__any_sync(FULL_WARP, !row.done())) {
    const bool active = !row.done();
    bool whole = true;
    u32 vertex = 0;
    if (active) vertex = row.next(whole, rows.num_ids);
    if (!whole) report_damage(search);
    claim(search, tally, rows, active && whole, vertex, parent, level);
  }
}

// One independently decodable span by the whole warp.
__device__ __forceinline__ void expand_span(const Search& search, Tally& tally, const Rows& rows,
                                            Span span, u32 parent, u32 level) {
  decode_span(
      rows, span, [&] { report_damage(search); },
      [&](bool present, u32 id) { claim(search, tally, rows, present, id, parent, level); });
}

// Head of one frontier vertex per lane; NO_VERTEX takes no part.
__device__ __forceinline__ void expand_heads(const Search& search, Tally& tally, const Rows& rows,
                                             u32 vertex, u32 level) {
  const u32 head = vertex < rows.num_vertices ? rows.heads[vertex] : NO_VERTEX;
  claim(search, tally, rows, head != NO_VERTEX, head, vertex, level);
}

// One short row per lane. Empty spans take no part.
__device__ __forceinline__ void expand_short(const Search& search, Tally& tally, Scratch& scratch,
                                             const Rows& rows, Span span, u32 parent, u32 level) {
  if (!__any_sync(FULL_WARP, span.begin < span.end)) return;
  expand_staged(search, tally, stage_short(scratch, rows, span), rows, parent, level);
}

// Tail of one frontier vertex per lane; NO_VERTEX takes no part. Hubs are left to the caller:
// returns the span of the lane's hub, or an empty one. The scratch memory says how short rows are
// staged: see cached.cuh for another one.
template <class Staging>
__device__ __forceinline__ Span expand_tails(const Search& search, Tally& tally, Staging& scratch,
                                             const Rows& rows, u32 vertex, u32 level) {
  Span span = {0, 0};
  if (vertex < rows.num_vertices) span = readable_span(rows, vertex);
  const u64 length = span.end - span.begin;
  const bool is_short = length != 0 && length <= SHORT_BYTES;
  const bool is_hub = length > SEGMENT_BYTES;
  tally.short_rows += is_short;
  tally.hub_rows += is_hub;
  const Span none = {0, 0};
  expand_short(search, tally, scratch, rows, is_short ? span : none, vertex, level);

  u32 lanes = __ballot_sync(FULL_WARP, length > SHORT_BYTES && !is_hub);
  tally.long_rows += lanes >> lane_id() & 1u;
  for (; lanes; lanes &= lanes - 1) {
    const int owner = __ffs((int)lanes) - 1;
    const Span row = share_span(span, owner);
    expand_span(search, tally, rows, row, __shfl_sync(FULL_WARP, vertex, owner), level);
  }
  return is_hub ? span : none;
}

#endif
