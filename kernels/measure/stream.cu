// Read all of an array once, in order, 16 bytes a lane.
//
// A thread owns every so many-th item. The sum is for the compiler: what nobody uses is not read.
#include "cuda/common.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
measure_stream(u64* total, const uint4* items, u64 num_items) {
  u64 sum = 0;
  for (u64 i : grid_stride(num_items)) {
    const uint4 item = items[i];
    sum += item.x + item.y + item.z + item.w;
  }
  add_total(total, sum);
}
