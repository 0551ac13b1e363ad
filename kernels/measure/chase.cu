// Follow a list through device memory: each read waits for the one before it.
//
// One lane works. Items are positions of items. Where it ends is written, so that all is read.
#include "cuda/common.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
measure_chase(u64* last, const u32* items, u64 num_steps) {
  if (blockIdx.x || threadIdx.x) return;
  u32 at = 0;
  for (u64 step = 0; step < num_steps; step++) at = items[at];
  *last = at;
}
