// Every vertex gets its head for a label where that is smaller, and else itself: a forest without a
// single atomic, because each label has one writer. Also forgets the last run's control words.
#include "components/forest.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
components_heads(Forest forest, Rows rows) {
  for (u64 v : grid_stride(rows.num_vertices)) {
    const u32 head = rows.heads[v];
    forest.labels[v] = head < v ? head : (u32)v;
  }
  for (u64 i : grid_stride(FOREST_WORDS)) forest.control[i] = 0;
}
