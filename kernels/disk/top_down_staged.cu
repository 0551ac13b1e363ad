// Top-down, from disk: expand the frontier's rows in a piece of the tails that was read into pinned
// memory.
//
// A piece holds the rows of num_vertices vertices from `first_vertex` on. A vertex is in the
// frontier if it is on the level before. Heads were expanded by top_down; lanes own rows as there.
// It waits for the disk, so that it may hold fewer blocks than others, and spills no registers.
#include "bfs/expand.cuh"
#include "cuda/hubs.cuh"
#include "cuda/on_level.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR - 1)
top_down_staged(Search search, Rows out_rows, u64 first_vertex, u64 num_vertices, u32 level) {
  __shared__ Scratch scratch[BLOCK_THREADS / 32];
  __shared__ LongRows waiting;
  waiting.clear();
  Tally tally = {};
  for (u32 first : block_turns((u32)((num_vertices + 31) / 32))) {
    const u32 vertex = lane_on_level(search, first + warp_in_block(), first_vertex, num_vertices,
                                     level_before(level));
    const Span hub =
        expand_tails(search, tally, scratch, waiting, out_rows, vertex, level);
    if (hub.begin < hub.end)
      list_hub(search.hubs, search.hub_segments, &search.control[CONTROL_HUBS], vertex, hub);
  }
  add_tally(search, tally);
}
