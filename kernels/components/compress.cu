// Let every vertex point to its root.
//
// A thread owns a vertex and alone writes its label; other threads read it on their way up, which
// volatile declares. Roots do not change, so no atomic is needed.
#include "components/forest.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
components_compress(Forest forest, u64 num_vertices) {
  for (u64 v : grid_stride(num_vertices)) {
    const u32 root = find_root(forest, (u32)v);
    if (root != label_of(forest, (u32)v)) shorten(forest, (u32)v, root);
  }
}
