// Sources that go top-down, hubs: one warp per segment of the hubs that many_top_down listed. A
// launch takes those from `begin` to `end`. Several warps may find one vertex: mark uses an atomic.
#include "cuda/hubs.cuh"
#include "many/many.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
many_top_down_hubs(Many many, Rows out_rows, u64 begin, u64 end, u64 top_down) {
  const u64 listed = many.control[CONTROL_HUBS];
  for (u64 i : warp_stride(count_between(begin, end, (u32)listed))) {
    const u64 segment = begin + i;
    const u64 hub = hub_of_segment(many.hub_segments, segment, 0, listed >> 32);
    const u32 vertex = many.hubs[hub];
    const Span row = row_span(out_rows, vertex);
    top_down_span(many, out_rows, segment_span(row, segment - many.hub_segments[hub]),
              many.frontier[vertex] & top_down);
  }
}
