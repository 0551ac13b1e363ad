// Join vertices outside the largest component with the neighbours in their tails, until they are in
// it. A launch takes the vertices from `begin` to `end`.
//
// Vertices of the largest component are left out: an edge that leaves it is read from its other
// end, and one inside it joins nothing (Afforest, Sutton et al., 2018). A warp takes 32 vertices.
// One lane reads a short row, from sectors staged together; the whole warp reads a longer one and
// stops when one lane has found the largest component. link joins trees by an atomic.
#include "cuda/decode.cuh"
#include "components/forest.cuh"

// One short row per lane.
__device__ __forceinline__ void join_short(const Forest& forest, Looked& looked, Scratch& scratch,
                                           const Rows& rows, Span span, u32 vertex, u32 largest) {
  StagedRow row = stage_short(scratch, rows, span);
  u32 root = vertex;
  while (!row.done() && root != largest) {
    bool whole;
    const u32 neighbour = row.next(whole, rows.num_vertices);
    looked.edges++;
    if (!whole || neighbour >= rows.num_vertices) {
      report_damage(forest);
      break;
    }
    root = link(forest, root, neighbour);
  }
  looked.bytes += row.position;
}

// One row by the whole warp.
__device__ __forceinline__ void join_long(const Forest& forest, Looked& looked, const Rows& rows,
                                          Span row, u32 vertex, u32 largest) {
  bool inside = false;
  for (u64 segment = 0; !inside && segment * SEGMENT_BYTES < row.end - row.begin; segment++) {
    Cursor cursor = start_cursor<32>(segment_span(row, segment));
    while (!inside && !cursor.done()) {
      const u64 from = cursor.chunk > cursor.span.begin ? cursor.chunk : cursor.span.begin;
      Decoded decoded;
      if (!decode_chunk<32>(decoded, cursor, rows, true)) report_damage(forest);
      const u64 to = cursor.chunk < cursor.span.end ? cursor.chunk : cursor.span.end;
      if (lane_id() == 0) looked.bytes += to - from;
      bool found = false;
#pragma unroll
      for (u32 k = 0; k < 4; k++) {
        if (!(decoded.present >> k & 1u)) continue;
        looked.edges++;
        if (decoded.ids[k] >= rows.num_vertices)
          report_damage(forest);
        else
          found = link(forest, vertex, decoded.ids[k]) == largest || found;
      }
      inside = __any_sync(FULL_WARP, found);
    }
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
components_tails(Forest forest, Rows rows, u32 largest_vertex, u64 begin, u64 end) {
  __shared__ Scratch scratch[BLOCK_THREADS / 32];
  const Span none = {0, 0};
  Looked looked = {0, 0};
  for (u64 first : warp_stride((end - begin + 31) / 32)) {
    // The largest component grows meanwhile, and its root may change.
    const u32 largest = find_root(forest, largest_vertex);
    const u64 v = begin + first * 32 + lane_id();
    Span span = none;
    if (v < end && find_root(forest, (u32)v) != largest)
      span = row_span(rows, (u32)v);
    const u64 length = span.end - span.begin;
    const bool is_short = length != 0 && length <= SHORT_BYTES;
    if (__any_sync(FULL_WARP, is_short))
      join_short(forest, looked, scratch[warp_in_block()], rows, is_short ? span : none, (u32)v,
                 largest);
    for (u32 lanes = __ballot_sync(FULL_WARP, length > SHORT_BYTES); lanes; lanes &= lanes - 1) {
      const int owner = __ffs((int)lanes) - 1;
      const Span row = share_span(span, owner);
      join_long(forest, looked, rows, row, __shfl_sync(FULL_WARP, (u32)v, owner), largest);
    }
  }
  add_looked(forest, looked);
}
