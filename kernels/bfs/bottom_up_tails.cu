// Bottom-up, second half: vertices whose head missed search their tail for a visited neighbour.
//
// A warp takes 32 vertices of pending[begin:end] at a time; search.cuh says which lane owns what.
// In a level that is cut, those from the cut on are left to top_down, which comes afterwards and
// finds before the cut nothing that is left.
#include "bfs/search.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
bottom_up_tails(Search search, Rows in_rows, Rows out_rows, u64 begin, u64 end, u32 level) {
  __shared__ Scratch scratch[BLOCK_THREADS / 32];
  __shared__ LeftRows left;
  if (threadIdx.x == 0) left.counts = 0;
  __syncthreads();
  Tally tally = {};
  for (u64 first : warp_stride((end - begin + 31) / 32)) {
    u32 vertex = lane_vertex(search.pending, begin, end, first);
    if (search.first_target && vertex >= search.first_target) vertex = NO_VERTEX;
    search_tails(search, tally, scratch[warp_in_block()], in_rows, out_rows, vertex, level, &left);
  }
  search_left(search, tally, left, in_rows, out_rows, level);
  add_tally(search, tally);
}
