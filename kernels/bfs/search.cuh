// Bottom-up search of tails, for bottom_up_tails and bottom_up_staged.
//
// A warp takes 32 vertices. One lane searches a short row, from sectors staged together: vertices
// lie in order, so neighbouring rows often share a sector. A group of PROBE_BYTES / 4 lanes
// searches a longer row: it loads PROBE_BYTES aligned bytes at a time and stops at the first hit.
// The groups of a warp step together, so that every collective has all lanes. `visited` does not
// change during the level. What is found goes to `claimed`, with an atomic because the vertices of
// one word belong to different lanes.
#ifndef OOCBFS_SEARCH_CUH
#define OOCBFS_SEARCH_CUH
#include "bfs/expand.cuh"

#define GROUP_LANES (PROBE_BYTES / 4u)
#define GROUPS (32u / GROUP_LANES)

__device__ __forceinline__ bool is_hit(const Search& search, Tally& tally, u32 id, u32 n) {
  tally.edges++;
  if (id >= n) report_damage(search);
  return id < n && is_reached(search, id);
}

// The first visited neighbour in what is left of a staged row, or NO_VERTEX.
__device__ __forceinline__ u32 search_staged(const Search& search, Tally& tally, StagedRow& row,
                                             u32 n) {
  u32 parent = NO_VERTEX;
  while (!row.done() && parent == NO_VERTEX) {
    bool whole;
    const u32 id = row.next(whole, n);
    if (!whole) report_damage(search);
    if (whole && is_hit(search, tally, id, n)) parent = id;
  }
  return parent;
}

// One short row per lane: the first visited neighbour, or NO_VERTEX. Half of the rows that reach
// into a second sector hit in their first one, so the second is loaded only then.
__device__ __forceinline__ u32 search_short(const Search& search, Tally& tally, Scratch& scratch,
                                            const Rows& rows, Span span) {
  StagedRow row = stage_first(scratch, rows, span);
  u32 parent = search_staged(search, tally, row, rows.num_ids);
  const bool goes_on = parent == NO_VERTEX && row.length < span.end - span.begin;
  if (__any_sync(FULL_WARP, goes_on)) {
    stage_rest(scratch, row, rows, span, goes_on);
    if (goes_on) parent = search_staged(search, tally, row, rows.num_ids);
  }
  return parent;
}

// The lane's first decoded id that was visited, or NO_VERTEX.
__device__ __forceinline__ u32 first_hit(const Search& search, Tally& tally,
                                         const Decoded& decoded, u32 n) {
  u32 hit = NO_VERTEX;
#pragma unroll
  for (u32 k = 0; k < 4; k++)
    if (hit == NO_VERTEX && decoded.present >> k & 1u && is_hit(search, tally, decoded.ids[k], n))
      hit = decoded.ids[k];
  return hit;
}

// One row per group of lanes: the group's first visited neighbour, or NO_VERTEX.
__device__ __forceinline__ u32 search_long(const Search& search, Tally& tally, const Rows& rows,
                                           Span row) {
  const u32 group_first = lane_id() & ~(GROUP_LANES - 1u);
  const u32 group_mask = (FULL_WARP >> (32u - GROUP_LANES)) << group_first;
  bool active = row.begin < row.end;
  u32 segment = 0, parent = NO_VERTEX;
  Cursor cursor = start_cursor<GROUP_LANES>(segment_span(row, 0));
  while (__any_sync(FULL_WARP, active)) {
    Decoded decoded;
    if (!decode_chunk<GROUP_LANES>(decoded, cursor, rows, active)) report_damage(search);
    const u32 hit = first_hit(search, tally, decoded, rows.num_ids);
    const u32 hits = __ballot_sync(FULL_WARP, hit != NO_VERTEX) & group_mask;
    const u32 winner = hits ? (u32)__ffs((int)hits) - 1 : lane_id();
    const u32 candidate = __shfl_sync(FULL_WARP, hit, (int)winner);
    if (hits) parent = candidate;
    if (hits || (cursor.done() && cursor.span.end == row.end)) active = false;
    if (active && cursor.done()) cursor = start_cursor<GROUP_LANES>(segment_span(row, ++segment));
  }
  return parent;
}

// Search the tail of one vertex per lane for a visited neighbour, or NO_VERTEX; a vertex that is
// NO_VERTEX takes no part.
__device__ __forceinline__ u32 find_in_tails(const Search& search, Tally& tally, Scratch& scratch,
                                             const Rows& in_rows, u32 vertex) {
  const Span none = {0, 0};
  Span span = none;
  if (vertex != NO_VERTEX) span = readable_span(in_rows, vertex);
  const bool is_short = span.end - span.begin <= SHORT_BYTES;
  tally.short_rows += vertex != NO_VERTEX && is_short;
  tally.long_rows += !is_short;
  u32 parent = search_short(search, tally, scratch, in_rows, is_short ? span : none);

  // Give the longer rows to the groups, GROUPS at a time, lowest lane first.
  u32 lanes = __ballot_sync(FULL_WARP, !is_short);
  while (lanes) {
    u32 mine = lanes;
    for (u32 group = lane_id() / GROUP_LANES; group && mine; group--) mine &= mine - 1;
    const int owner = mine ? __ffs((int)mine) - 1 : 0;
    const Span row = share_span(span, owner);
    const u32 hit = search_long(search, tally, in_rows, mine ? row : none);
    for (u32 group = 0; group < GROUPS && lanes; group++, lanes &= lanes - 1) {
      const u32 result = __shfl_sync(FULL_WARP, hit, (int)(group * GROUP_LANES));
      if (lane_id() == (u32)__ffs((int)lanes) - 1) parent = result;
    }
  }
  return parent;
}

// Visit the vertices whose tail holds a visited neighbour.
__device__ __forceinline__ void search_tails(const Search& search, Tally& tally, Scratch& scratch,
                                             const Rows& in_rows, const Rows& out_rows, u32 vertex,
                                             u32 level) {
  const u32 parent = find_in_tails(search, tally, scratch, in_rows, vertex);
  const bool found = parent != NO_VERTEX;
  if (found) {
    atomicOr(&search.claimed[vertex >> 5], 1u << (vertex & 31u));
    reach(search, vertex, parent, level);
    tally.add_found(out_rows, vertex);
  }
  append(search.queue, &search.control[CONTROL_QUEUE_END], 0, found, vertex);
}

#endif
