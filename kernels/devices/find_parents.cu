// Vertices that another device found look for a parent themselves: a mark does not say whose.
//
// They are queue[begin:end] after merge_words, as far as that is filled. Each has a neighbour that
// was visited when the level began, which `reached` says. A lane owns a vertex and alone writes its
// parent; search.cuh says who reads its tail. Nothing is found, so nothing is appended.
#include "bfs/search.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
find_parents(Search search, Rows in_rows, u64 begin, u64 end) {
  __shared__ Scratch scratch[BLOCK_THREADS / 32];
  const u64 count = count_between(begin, end, search.control[CONTROL_QUEUE_END]);
  Tally tally = {};
  for (u64 first : warp_stride((count + 31) / 32)) {
    const u32 vertex = lane_vertex(search.queue, begin, begin + count, first);
    u32 parent = vertex == NO_VERTEX ? NO_VERTEX : in_rows.heads[vertex];
    tally.edges += parent != NO_VERTEX;
    if (parent >= in_rows.num_ids || !is_reached(search, parent)) parent = NO_VERTEX;
    const u32 unanswered = parent == NO_VERTEX ? vertex : NO_VERTEX;
    const u32 found = find_in_tails(search, tally, scratch[warp_in_block()], in_rows, unanswered);
    if (parent == NO_VERTEX) parent = found;
#if WITH_PARENTS
    if (vertex != NO_VERTEX) search.parents[vertex] = parent;
#endif
  }
  add_tally(search, tally);
}
