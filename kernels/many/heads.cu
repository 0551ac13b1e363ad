// Sources that go bottom-up, first half: every vertex asks its head for what it has not seen.
//
// A lane owns the vertex it asks for, so what it finds needs no atomic. Vertices that still miss a
// source and have a tail are listed for many_tails. Reads device memory only.
#include "many/many.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
many_heads(Many many, Rows in_rows, u64 bottom_up) {
  const u64 n = in_rows.num_vertices;
  for (u64 first : warp_stride((n + 31) / 32)) {
    const u64 v = first * 32 + lane_id();
    const u64 wanted = v < n ? bottom_up & ~many.seen[v] : 0;
    bool missed = false;
    if (wanted) {
      const u32 head = in_rows.heads[v];
      if (head < n) {
        const u64 got = many.frontier[head] & wanted;
        if (got) many.next_frontier[v] |= got;
        const Span span = row_span(in_rows, (u32)v);
        missed = got != wanted && span.begin < span.end;
      } else if (head != NO_VERTEX) {
        report_damage(many);
      }
    }
    append(many.pending, &many.control[CONTROL_PENDING], 0, missed, (u32)v);
  }
}
