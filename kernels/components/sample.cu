// Replace sampled vertices by their roots, and those without neighbours by NO_VERTEX. A thread
// owns a sample; labels do not change meanwhile.
#include "components/forest.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
components_sample(Forest forest, Rows rows, u64 num_samples) {
  for (u64 i : grid_stride(num_samples)) {
    const u32 v = forest.samples[i];
    forest.samples[i] = rows.heads[v] == NO_VERTEX ? NO_VERTEX : find_root(forest, v);
  }
}
