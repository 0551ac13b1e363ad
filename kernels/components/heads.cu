// Label every vertex with its head, if that is smaller, and else with itself. Also clear the
// control words of the last run.
//
// A thread owns a vertex and alone writes its label, so this makes a forest without an atomic.
#include "components/forest.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
components_heads(Forest forest, Rows rows) {
  for (u64 v : grid_stride(rows.num_vertices)) {
    const u32 head = rows.heads[v];
    forest.labels[v] = head < v ? head : (u32)v;
  }
  for (u64 i : grid_stride(FOREST_WORDS)) forest.control[i] = 0;
}
