// Hubs: rows of several segments. They are listed, so that their segments spread over all blocks.
//
// A control word holds the number of hubs in its upper half and of their segments in its lower
// half. One atomic adds to both, which keeps the list sorted by first segment. Segments are
// numbered through the whole list, so a warp finds the hub of its segment by bisection. Where a
// level is cut, only the last segments of a row are listed.
#ifndef OOCBFS_HUBS_CUH
#define OOCBFS_HUBS_CUH
#include "cuda/rows.cuh"

__device__ __forceinline__ u64 count_segments(Span row) {
  return (row.end - row.begin + SEGMENT_BYTES - 1) / SEGMENT_BYTES;
}

__device__ __forceinline__ void list_hub(u32* hubs, u32* hub_segments, u64* counts, u32 vertex,
                                         Span row) {
  const u64 before = atomicAdd(counts, 1ull << 32 | count_segments(row));
  hubs[before >> 32] = vertex;
  hub_segments[before >> 32] = (u32)before;
}

// The first neighbour of a segment, or NO_VERTEX if it is damaged.
__device__ __forceinline__ u32 first_neighbour(const Rows& rows, u64 offset, u64 end) {
  u64 value = 0;
  u32 word = 0;
  for (u32 k = 0; k < 5 && offset < end; k++, offset++) {
    if (k == 0 || !(offset & 3u))
      word = load_word(rows, offset & ~3ull) >> (8 * (u32)(offset & 3u));
    value |= (u64)(word & 0x7fu) << (7 * k);
    if (!(word & 0x80u)) return value < NO_VERTEX ? (u32)value : NO_VERTEX;
    word >>= 8;
  }
  return NO_VERTEX;
}

// A hub's row without the segments that lie wholly before search.first_target.
__device__ __forceinline__ Span skip_segments(const Search& search, const Rows& rows, Span row) {
  if (!search.first_target) return row;
  u64 low = 0, high = count_segments(row);
  while (high - low > 1) {
    const u64 middle = (low + high) / 2;
    const u32 first = first_neighbour(rows, row.begin + middle * SEGMENT_BYTES, row.end);
    if (first >= rows.num_ids) report_damage(search);
    if (first <= search.first_target)
      low = middle;
    else
      high = middle;
  }
  return {row.begin + low * SEGMENT_BYTES, row.end};
}

// The last hub in [low, high) whose first segment is not after this one.
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
