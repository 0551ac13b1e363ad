// Sources that go bottom-up, second half: vertices whose head did not have all ask their tails.
//
// A warp takes 32 vertices of pending[begin:end], as far as that is filled. One lane reads a short
// row; the whole warp reads a longer one, in lines of 128 bytes, until no source is wanted any more
// or the row ends. A vertex belongs to one lane, so what it finds needs no atomic.
#include "many/many.cuh"

// The sources among `wanted` whose frontier holds a neighbour. The whole warp searches one row.
__device__ __forceinline__ u64 search_row(const Many& many, const Rows& rows, Span row,
                                          u64 wanted) {
  u64 found = 0;
  u64 segment = 0;
  Cursor cursor = start_cursor<32>(segment_span(row, 0));
  while (true) {
    Decoded decoded;
    if (!decode_chunk<32>(decoded, cursor, rows, true)) report_damage(many);
    u64 met = 0;
#pragma unroll
    for (u32 k = 0; k < 4; k++)
      if (decoded.present >> k & 1u) {
        if (decoded.ids[k] < rows.num_vertices)
          met |= many.frontier[decoded.ids[k]];
        else
          report_damage(many);
      }
    found |= join_words(met);
    if (!(wanted & ~found)) break;
    if (cursor.done()) {
      if (cursor.span.end == row.end) break;
      cursor = start_cursor<32>(segment_span(row, ++segment));
    }
  }
  return found & wanted;
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
many_tails(Many many, Rows in_rows, u64 begin, u64 end, u64 bottom_up) {
  __shared__ Scratch scratch[BLOCK_THREADS / 32];
  const u32 n = in_rows.num_vertices;
  const u64 count = count_between(begin, end, many.control[CONTROL_PENDING]);
  for (u64 first : warp_stride((count + 31) / 32)) {
    const u32 vertex = lane_vertex(many.pending, begin, begin + count, first);
    Span span = {0, 0};
    u64 wanted = 0, found = 0;
    if (vertex < n) {
      span = row_span(in_rows, vertex);
      wanted = bottom_up & ~(many.seen[vertex] | many.next_frontier[vertex]);
    }
    const bool is_short = span.end - span.begin <= SHORT_BYTES;
    const Span none = {0, 0};
    StagedRow row = stage_short(scratch[warp_in_block()], in_rows, is_short ? span : none);
    while (!row.done() && wanted & ~found) {
      bool whole;
      const u32 id = row.next(whole, n);
      if (whole && id < n)
        found |= many.frontier[id];
      else
        report_damage(many);
    }
    u32 lanes = __ballot_sync(FULL_WARP, !is_short);
    for (; lanes; lanes &= lanes - 1) {
      const int owner = __ffs((int)lanes) - 1;
      const Span longer = share_span(span, owner);
      const u64 result =
          search_row(many, in_rows, longer, __shfl_sync(FULL_WARP, wanted, owner));
      if ((int)lane_id() == owner) found = result;
    }
    if (found & wanted) many.next_frontier[vertex] |= found & wanted;
  }
}
