// Check the segments of hubs that check_rows listed, from `begin` to `end`: one warp a segment.
#include "results/check.cuh"
#include "cuda/hubs.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
check_hubs(Search search, Checked checked, Rows rows, u64 begin, u64 end) {
  const u64 listed = search.control[CONTROL_HUBS];
  u32 broken = 0;
  for (u64 i : warp_stride(count_between(begin, end, (u32)listed))) {
    const u64 hub = hub_of_segment(search.hub_segments, begin + i, 0, listed >> 32);
    const u32 vertex = search.hubs[hub];
    const u64 number = begin + i - search.hub_segments[hub];
    const Span segment = segment_span(readable_span(rows, vertex), number);
    broken += check_span(search, checked, rows, segment, vertex, found_level(search, vertex));
  }
  add_total(checked.broken, broken);
}
