// Bottom-up, from disk: unvisited vertices search a piece of the tails that was read into pinned
// memory.
//
// A piece holds the rows of num_vertices vertices from `first_vertex` on. A lane owns a vertex,
// which is unvisited if it has no level; search.cuh says which lanes search a row.
#include "cuda/on_level.cuh"
#include "bfs/search.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
bottom_up_staged(Search search, Rows in_rows, Rows out_rows, u64 first_vertex, u64 num_vertices,
                 u32 level) {
  __shared__ Scratch scratch[BLOCK_THREADS / 32];
  Tally tally = {};
  for (u64 first : warp_stride((num_vertices + 31) / 32)) {
    const u32 vertex = lane_on_level(search, first, first_vertex, num_vertices, NOT_REACHED);
    search_tails(search, tally, scratch[warp_in_block()], in_rows, out_rows, vertex, level);
  }
  add_tally(search, tally);
}
