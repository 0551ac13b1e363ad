// Join vertices with their heads: with all heads, or only with those that are larger than the
// vertex, which components_heads left out.
//
// A thread owns a vertex; link joins trees by an atomic.
#include "components/forest.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
components_link(Forest forest, Rows rows, u32 only_larger) {
  for (u64 v : grid_stride(rows.num_vertices)) {
    const u32 head = rows.heads[v];
    if (head == NO_VERTEX) continue;
    if (head >= rows.num_vertices)
      report_damage(forest);
    else if (head > v || !only_larger)
      link(forest, (u32)v, head);
  }
}
