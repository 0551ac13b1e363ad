// Bottom-up, second half: vertices whose head missed search their tail for a visited neighbour.
#include "bfs/search.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
bottom_up_tails(Search search, Rows in_rows, Rows out_rows, u64 num_pending, u32 level) {
  __shared__ Scratch scratch[BLOCK_THREADS / 32];
  Tally tally = {};
  for (u64 first : warp_stride((num_pending + 31) / 32)) {
    const u64 i = first * 32 + lane_id();
    const u32 vertex = i < num_pending ? search.pending[i] : NO_VERTEX;
    search_tails(search, tally, scratch[warp_in_block()], in_rows, out_rows, vertex, level);
  }
  add_tally(search, tally);
}
