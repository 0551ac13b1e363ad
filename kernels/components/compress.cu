// Let every vertex point to its root. The label of a vertex has one writer, but others read it meanwhile
// on their way up; roots stay what they are.
#include "components/forest.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
components_compress(Forest forest, u64 num_vertices) {
  for (u64 v : grid_stride(num_vertices)) {
    const u32 root = find_root(forest, (u32)v);
    if (root != label_of(forest, (u32)v)) shorten(forest, (u32)v, root);
  }
}
