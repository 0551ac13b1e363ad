// Both directions in one level: of what the heads left, vertices before a cut search their tails, and
// the frontier reaches for those from the cut on.
//
// The bytes of a top-down level are mostly those of hubs, and half of what a hub's row leads to are the
// other vertices of high degree, of which few are left to find. The row is sorted, so in degree order
// they are its first segments: those are skipped, and the few search. Neither direction looks at what
// the other one finds: `visited` does not change, and nobody reaches for a vertex before the cut.
// They keep tallies of their own, so that the compiler has registers enough for both.
#include "cuda/hubs.cuh"
#include "bfs/search.cuh"

__device__ __forceinline__ void search_before_cut(const Search& search, Scratch& scratch,
                                                  const Rows& in_rows, const Rows& out_rows,
                                                  u64 num_pending, u32 level) {
  Tally tally = {};
  for (u64 first : warp_stride((num_pending + 31) / 32)) {
    const u64 i = first * 32 + lane_id();
    u32 vertex = i < num_pending ? search.pending[i] : NO_VERTEX;
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
    const u64 i = begin + first * 32 + lane_id();
    const u32 vertex = i < end ? search.queue[i] : NO_VERTEX;
    expand_heads(search, tally, out_rows, vertex, level);
    const Span hub = expand_tails(search, tally, scratch, out_rows, vertex, level);
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
