// Bottom-up search of tails, for bottom_up_tails and bottom_up_staged.
//
// A warp takes 32 vertices. One lane searches a short row, from sectors staged together: vertices
// lie in order, so neighbouring rows often share a sector. A group of PROBE_BYTES / 4 lanes
// searches a longer row: it loads PROBE_BYTES aligned bytes at a time and stops at the first hit.
// The groups of a warp step together, so that every collective has all lanes. `visited` does not
// change during the level. What is found goes to `claimed`, with an atomic because the vertices of
// one word belong to different lanes.
//
// Most rows that hit, hit early. A row of several segments whose first one holds nothing is likely
// to be read to its end, which takes a group longer than all other rows of the block: its other
// segments are left to all warps of the block, which search them side by side.
#ifndef OOCBFS_SEARCH_CUH
#define OOCBFS_SEARCH_CUH
#include "bfs/expand.cuh"
#include "cuda/hubs.cuh"

#define GROUP_LANES (PROBE_BYTES / 4u)
#define GROUPS (32u / GROUP_LANES)

#define MOST_LEFT 64u

// Rows that are left, listed as hubs are (hubs.cuh): without their first segments. What does not
// fit is searched by its group; `segments` has one place more, where that shows.
struct LeftRows {
  u32 vertices[MOST_LEFT], segments[MOST_LEFT + 1];
  u64 counts;

  __device__ __forceinline__ u32 num_rows() const {
    const u32 listed = (u32)(counts >> 32);
    return listed < MOST_LEFT ? listed : MOST_LEFT;
  }
  __device__ __forceinline__ u32 num_segments() const {
    return counts >> 32 > MOST_LEFT ? segments[MOST_LEFT] : (u32)counts;
  }
  // Whether the row of a vertex has a place, from which on `num` of its segments are left.
  __device__ __forceinline__ bool leave(u32 vertex, u64 num) {
    const u64 before = atomicAdd(&counts, 1ull << 32 | num);
    const u64 place = before >> 32;
    if (place <= MOST_LEFT) segments[place] = (u32)before;
    if (place < MOST_LEFT) vertices[place] = vertex;
    return place < MOST_LEFT;
  }
};

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

// One row per group of lanes: the group's first visited neighbour, or NO_VERTEX if there is none or
// if the row was left.
__device__ __forceinline__ u32 search_long(const Search& search, Tally& tally, const Rows& rows,
                                           Span row, u32 vertex, LeftRows* left) {
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
    const bool goes_on = active && cursor.done();
    if (left) {
      bool is_left = false;
      if (goes_on && segment == 0 && lane_id() == group_first)
        is_left = left->leave(vertex, count_segments(row) - 1);
      if (__ballot_sync(FULL_WARP, is_left) & group_mask) active = false;
    }
    if (active && goes_on) cursor = start_cursor<GROUP_LANES>(segment_span(row, ++segment));
  }
  return parent;
}

// Search the tail of one vertex per lane for a visited neighbour, or NO_VERTEX; a vertex that is
// NO_VERTEX takes no part. Rows of several segments may be left to the block, if it has a list.
__device__ __forceinline__ u32 find_in_tails(const Search& search, Tally& tally, Scratch& scratch,
                                             const Rows& in_rows, u32 vertex,
                                             LeftRows* left = nullptr) {
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
    const u32 searching = __shfl_sync(FULL_WARP, vertex, owner);
    const u32 hit = search_long(search, tally, in_rows, mine ? row : none, searching, left);
    for (u32 group = 0; group < GROUPS && lanes; group++, lanes &= lanes - 1) {
      const u32 result = __shfl_sync(FULL_WARP, hit, (int)(group * GROUP_LANES));
      if (lane_id() == (u32)__ffs((int)lanes) - 1) parent = result;
    }
  }
  return parent;
}

// Visit a vertex per lane, unless its parent is NO_VERTEX or another lane has visited it.
__device__ __forceinline__ void visit_found(const Search& search, Tally& tally,
                                            const Rows& out_rows, u32 vertex, u32 parent,
                                            u32 level) {
  bool found = parent != NO_VERTEX;
  if (found) {
    const u32 bit = 1u << (vertex & 31u);
    found = !(atomicOr(&search.claimed[vertex >> 5], bit) & bit);
  }
  if (found) {
    reach(search, vertex, parent, level);
    tally.add_found(out_rows, vertex);
  }
  append(search.queue, &search.control[CONTROL_QUEUE_END], 0, found, vertex);
}

// Visit the vertices whose tail holds a visited neighbour.
__device__ __forceinline__ void search_tails(const Search& search, Tally& tally, Scratch& scratch,
                                             const Rows& in_rows, const Rows& out_rows, u32 vertex,
                                             u32 level, LeftRows* left = nullptr) {
  const u32 parent = find_in_tails(search, tally, scratch, in_rows, vertex, left);
  visit_found(search, tally, out_rows, vertex, parent, level);
}

// Search a segment of a row by the whole warp, and visit its vertex if that holds a visited
// neighbour. Other warps may find the vertex in other segments at the same time.
__device__ __forceinline__ void search_segment(const Search& search, Tally& tally,
                                               const Rows& in_rows, const Rows& out_rows,
                                               Span segment, u32 vertex, u32 level) {
  Cursor cursor = start_cursor<32>(segment);
  u32 hits = 0, hit = NO_VERTEX;
  while (!hits && !cursor.done()) {
    Decoded decoded;
    if (!decode_chunk<32>(decoded, cursor, in_rows, true)) report_damage(search);
    hit = first_hit(search, tally, decoded, in_rows.num_ids);
    hits = __ballot_sync(FULL_WARP, hit != NO_VERTEX);
  }
  const bool is_first = hits && lane_id() == (u32)__ffs((int)hits) - 1;
  visit_found(search, tally, out_rows, vertex, is_first ? hit : NO_VERTEX, level);
}

// Search what the warps of the block have left. All threads of the block call this together.
__device__ __forceinline__ void search_left(const Search& search, Tally& tally,
                                            const LeftRows& left, const Rows& in_rows,
                                            const Rows& out_rows, u32 level) {
  __syncthreads();
  for (u32 i = warp_in_block(); i < left.num_segments(); i += BLOCK_THREADS / 32) {
    const u64 number = hub_of_segment(left.segments, i, 0, left.num_rows());
    const u32 vertex = left.vertices[number];
    const Span row = readable_span(in_rows, vertex);
    const Span segment = segment_span(row, 1 + i - left.segments[number]);
    search_segment(search, tally, in_rows, out_rows, segment, vertex, level);
  }
}

#endif
