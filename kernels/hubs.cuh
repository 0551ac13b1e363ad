// Hubs: rows of several segments, which are listed so that their segments spread over all blocks.
//
// One atomic on a word with the number of hubs above that of segments keeps the list sorted by first
// segment. Segments are numbered through the list, so a warp finds the hub of its segment by bisection.
#ifndef OOCBFS_HUBS_CUH
#define OOCBFS_HUBS_CUH
#include "rows.cuh"

__device__ __forceinline__ void list_hub(u32* hubs, u32* hub_segments, u64* counts, u32 vertex,
                                         Span row) {
  const u64 num_segments = (row.end - row.begin + SEGMENT_BYTES - 1) / SEGMENT_BYTES;
  const u64 place = atomicAdd(counts, 1ull << 32 | num_segments);
  hubs[place >> 32] = vertex;
  hub_segments[place >> 32] = (u32)place;
}

// The last hub in [low, high) whose first segment is not behind this one.
__device__ __forceinline__ u64 hub_of_segment(const u32* hub_segments, u64 segment, u64 low,
                                              u64 high) {
  while (high - low > 1) {
    const u64 middle = (low + high) / 2;
    if (hub_segments[middle] <= segment)
      low = middle;
    else
      high = middle;
  }
  return low;
}

#endif
