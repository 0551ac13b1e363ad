// Top-down, hubs: one warp per segment of the hubs that were listed since `hubs_base`, of which a
// launch takes those from `begin` to `end`.
//
// Several warps may expand one row, since segments decode independently; claim decides by an
// atomic which lane finds a vertex.
#include "bfs/expand.cuh"
#include "cuda/hubs.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
top_down_hubs(Search search, Rows out_rows, u64 hubs_base, u64 begin, u64 end, u32 level) {
  const u64 listed = search.control[CONTROL_HUBS];
  const u64 first_segment = (u32)hubs_base, num_segments = (u32)listed - first_segment;
  Tally tally = {};
  for (u64 i : warp_stride(count_between(begin, end, num_segments))) {
    const u64 segment = first_segment + begin + i;
    const u64 hub = hub_of_segment(search.hub_segments, segment, hubs_base >> 32, listed >> 32);
    const u32 vertex = search.hubs[hub];
    const Span row = readable_span(out_rows, vertex);
    // The last segments of the row are listed: count them from its end.
    const u64 next_hub = hub + 1 < listed >> 32 ? search.hub_segments[hub + 1] : (u32)listed;
    const u64 number = count_segments(row) - (next_hub - segment);
    expand_span(search, tally, out_rows, segment_span(row, number), vertex, level);
  }
  add_tally(search, tally);
}
