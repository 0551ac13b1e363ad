// Read units of an array at random, in device memory or in pinned host memory: sectors of 32 bytes
// by two lanes, lines of 128 by eight.
//
// Lanes of one unit are neighbours, so that it is one request. Which unit a read takes depends on
// its number alone: the next one does not wait for it. The sum is for the compiler.
#include "cuda/common.cuh"

// Any bit of a number changes half of the bits of this one (the finalizer of splitmix64).
__device__ __forceinline__ u64 mixed(u64 number) {
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9ull;
  number = (number ^ number >> 27) * 0x94d049bb133111ebull;
  return number ^ number >> 31;
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
measure_scattered(u64* total, const uint4* items, u64 num_units, u64 num_reads, u32 unit_lanes,
                  u32 over_bus) {
  u64 sum = 0;
  for (u64 i : grid_stride(num_reads * unit_lanes)) {
    const u64 unit = (mixed(i / unit_lanes) >> 32) * num_units >> 32;
    const uint4* place = &items[unit * unit_lanes + i % unit_lanes];
    const uint4 item = over_bus ? __ldg(place) : *place;
    sum += item.x + item.y + item.z + item.w;
  }
  add_total(total, sum);
}
