// Top-down: the frontier queue[begin:end] claims its unvisited neighbours.
//
// A warp takes 32 vertices of the frontier, or fewer where few vertices have much to expand, so
// that more warps share it. One lane expands a head and a short row, a whole warp a long row (after
// Merrill et al., 2012): the warps of a block share theirs. Hubs are listed for top_down_hubs. Two
// lanes may find one vertex: claim decides by an atomic.
//
// In a level that is cut, vertices before the cut search (bottom_up_tails), and the frontier
// reaches for the others. Most bytes of a top-down level belong to hubs. Half of a hub's neighbours
// are other vertices of high degree, of which few are left to find. A row is sorted, so in degree
// order these are its first segments: they are skipped, and the few vertices search instead.
#include "bfs/expand.cuh"
#include "cuda/hubs.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
top_down(Search search, Rows out_rows, u64 begin, u64 end, u32 each, u32 level) {
  __shared__ Scratch scratch[BLOCK_THREADS / 32];
  __shared__ LongRows waiting;
  waiting.clear();
  Tally tally = {};
  for (u32 first : block_turns((u32)((end - begin + each - 1) / each))) {
    const u32 vertex = lane_vertex(search.queue, begin, end, first + warp_in_block(), each);
    expand_heads(search, tally, out_rows, vertex, level);
    const Span hub =
        expand_tails(search, tally, scratch, waiting, out_rows, vertex, level);
    if (hub.begin < hub.end)
      list_hub(search.hubs, search.hub_segments, &search.control[CONTROL_HUBS], vertex,
               skip_segments(search, out_rows, hub));
  }
  add_tally(search, tally);
}
