// Check the rows of vertices from `begin` to `end` by Graph500's rules: see check.cuh.
//
// Only vertices on the levels before `num_expanded` were expanded, so only their arcs say anything.
// A warp takes 32 vertices. One lane looks at a head and a short row, the whole warp at a long row.
// Hubs are listed for check_hubs.
#include "results/check.cuh"
#include "cuda/hubs.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
check_rows(Search search, Checked checked, Rows rows, u64 begin, u64 end, u32 num_expanded) {
  __shared__ Scratch scratch[BLOCK_THREADS / 32];
  const Span none = {0, 0};
  u32 broken = 0;
  for (u64 first : warp_stride((end - begin + 31) / 32)) {
    const u64 v = begin + first * 32 + lane_id();
    const u32 level = v < end ? found_level(search, v) : NO_VERTEX;
    Span span = none;
    if (level < num_expanded) {
      const u32 head = rows.heads[v];
      if (head != NO_VERTEX)
        broken += check_arc(search, checked, (u32)v, level, head, rows.num_ids);
      span = readable_span(rows, (u32)v);
    }
    const u64 length = span.end - span.begin;
    const bool is_short = length <= SHORT_BYTES;
    StagedRow row = stage_short(scratch[warp_in_block()], rows, is_short ? span : none);
    while (!row.done()) {
      bool whole;
      const u32 id = row.next(whole, rows.num_ids);
      broken += whole ? check_arc(search, checked, (u32)v, level, id, rows.num_ids) : 1;
    }
    if (length > SEGMENT_BYTES)
      list_hub(search.hubs, search.hub_segments, &search.control[CONTROL_HUBS], (u32)v, span);
    u32 lanes = __ballot_sync(FULL_WARP, !is_short && length <= SEGMENT_BYTES);
    for (; lanes; lanes &= lanes - 1) {
      const int owner = __ffs((int)lanes) - 1;
      const Span longer = share_span(span, owner);
      broken += check_span(search, checked, rows, longer, __shfl_sync(FULL_WARP, (u32)v, owner),
                           __shfl_sync(FULL_WARP, level, owner));
    }
  }
  add_total(checked.broken, broken);
}
