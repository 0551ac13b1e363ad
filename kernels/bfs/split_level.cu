// Both directions in one level. Of the vertices that the heads did not find, those before a cut
// search their tails; the frontier expands to those from the cut on.
//
// Most bytes of a top-down level belong to hubs. Half of a hub's neighbours are other vertices of
// high degree, of which few are left to find. A row is sorted, so in degree order these are its
// first segments: they are skipped, and the few vertices search instead. Neither direction depends
// on what the other one finds: `visited` does not change, and no lane expands to a vertex before
// the cut. So each vertex is claimed in one direction only. Lanes own what they own in
// bottom_up_tails and top_down. Each direction has its own tally, so that the compiler has enough
// registers for both.
#include "cuda/hubs.cuh"
#include "bfs/search.cuh"

__device__ __forceinline__ void search_before_cut(const Search& search, Scratch& scratch,
                                                  const Rows& in_rows, const Rows& out_rows,
                                                  u64 num_pending, u32 level) {
  Tally tally = {};
  for (u64 first : warp_stride((num_pending + 31) / 32)) {
    u32 vertex = lane_vertex(search.pending, 0, num_pending, first);
    if (vertex >= search.first_target) vertex = NO_VERTEX;
    search_tails(search, tally, scratch, in_rows, out_rows, vertex, level);
  }
  add_tally(search, tally);
}

__device__ __forceinline__ void expand_from_cut(const Search& search, Scratch& scratch,
                                                const Rows& out_rows, u64 begin, u64 end,
                                                u32 level) {
  Tally tally = {};
  for (u64 first : warp_stride((end - begin + 31) / 32)) {
    const u32 vertex = lane_vertex(search.queue, begin, end, first);
    const Span hub = expand_vertex(search, tally, scratch, out_rows, vertex, level);
    if (hub.begin < hub.end)
      list_hub(search.hubs, search.hub_segments, &search.control[CONTROL_HUBS], vertex,
               skip_segments(search, out_rows, hub));
  }
  add_tally(search, tally);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
split_level(Search search, Rows in_rows, Rows out_rows, u64 num_pending, u64 begin, u64 end,
            u32 level) {
  __shared__ Scratch scratch[BLOCK_THREADS / 32];
  search_before_cut(search, scratch[warp_in_block()], in_rows, out_rows, num_pending, level);
  expand_from_cut(search, scratch[warp_in_block()], out_rows, begin, end, level);
}
