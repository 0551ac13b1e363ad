// Top-down: the frontier queue[begin:end] reaches for what nobody claimed.
//
// A warp takes 32 frontier vertices: heads and short rows by one thread each, long rows by the warp.
// Hubs are listed for top_down_hubs.
#include "bfs/expand.cuh"
#include "cuda/hubs.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
top_down(Search search, Rows out_rows, u64 begin, u64 end, u32 level) {
  __shared__ Scratch scratch[BLOCK_THREADS / 32];
  Tally tally = {};
  for (u64 first : warp_stride((end - begin + 31) / 32)) {
    const u64 i = begin + first * 32 + lane_id();
    const u32 vertex = i < end ? search.queue[i] : NO_VERTEX;
    expand_heads(search, tally, out_rows, vertex, level);
    const Span hub =
        expand_tails(search, tally, scratch[warp_in_block()], out_rows, vertex, level);
    if (hub.begin < hub.end)
      list_hub(search.hubs, search.hub_segments, &search.control[CONTROL_HUBS], vertex, hub);
  }
  add_tally(search, tally);
}
