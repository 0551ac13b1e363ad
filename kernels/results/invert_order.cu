// Find the stored vertex at each position, from a piece of the positions of stored vertices.
//
// A thread owns a vertex, and no two of them have the same position.
#include "cuda/common.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
invert_order(u32* stored_at, const u32* order, u64 first, u64 count) {
  for (u64 i : grid_stride(count)) stored_at[order[i]] = (u32)(first + i);
}
