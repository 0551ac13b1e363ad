// Sources that go top-down: the rows of the frontier give their words to their neighbours.
//
// A warp takes 32 vertices of queue[begin:end]. One lane handles a head and a short row, the whole
// warp a long row. Hubs are for many_top_down_hubs. Two lanes may find one vertex: mark uses an
// atomic.
#include "cuda/hubs.cuh"
#include "many/many.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
many_top_down(Many many, Rows out_rows, u64 begin, u64 end, u64 top_down) {
  __shared__ Scratch scratch[BLOCK_THREADS / 32];
  const u32 n = out_rows.num_vertices;
  for (u64 first : warp_stride((end - begin + 31) / 32)) {
    const u32 vertex = lane_vertex(many.queue, begin, end, first);
    const u64 sources = vertex < n ? many.frontier[vertex] & top_down : 0;
    Span span = {0, 0};
    if (sources) {
      const u32 head = out_rows.heads[vertex];
      if (head != NO_VERTEX) mark(many, head, sources, n);
      span = row_span(out_rows, vertex);
    }
    const u64 length = span.end - span.begin;
    const Span none = {0, 0};
    StagedRow row = stage_short(scratch[warp_in_block()], out_rows,
                                length <= SHORT_BYTES ? span : none);
    while (!row.done()) {
      bool whole;
      const u32 id = row.next(whole, n);
      if (whole)
        mark(many, id, sources, n);
      else
        report_damage(many);
    }
    if (length > SEGMENT_BYTES)
      list_hub(many.hubs, many.hub_segments, &many.control[CONTROL_HUBS], vertex, span);
    u32 lanes = __ballot_sync(FULL_WARP, length > SHORT_BYTES && length <= SEGMENT_BYTES);
    for (; lanes; lanes &= lanes - 1) {
      const int owner = __ffs((int)lanes) - 1;
      const Span longer = share_span(span, owner);
      top_down_span(many, out_rows, longer, __shfl_sync(FULL_WARP, sources, owner));
    }
  }
}
