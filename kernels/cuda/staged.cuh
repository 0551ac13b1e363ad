// Short rows, one per lane. A warp copies the sectors of its 32 rows side by side into shared
// memory, then each lane decodes its own row. The scratch memory belongs to one warp, so
// __syncwarp orders all accesses to it and no atomic is needed.
#ifndef OOCBFS_STAGED_CUH
#define OOCBFS_STAGED_CUH
#include "cuda/rows.cuh"

// Short rows touch at most two sectors.
#define SHORT_BYTES 32u

struct Scratch {
  uint4 halves[128];
  u64 sectors[64];   // offset of each staged sector; bit 0 and 1: which halves the row needs
};

struct StagedRow {
  const u8* bytes;
  u32 length, position;
  u32 sum;   // last id + 1

  __device__ __forceinline__ bool done() const { return position >= length; }

  // The next id. `whole` becomes false if the row ends inside the varint, if the varint is too
  // long, or if the id is none of n vertices.
  __device__ __forceinline__ u32 next(bool& whole, u32 n) {
    u64 value = 0;
    u32 shift = 0, byte = 0x80u;
    while (position < length && byte & 0x80u) {
      byte = bytes[position++];
      if (shift < 63) value |= (u64)(byte & 0x7fu) << shift;
      shift += 7;
    }
    // The sum is wider than 32 bits: nothing wraps around.
    whole = !(byte & 0x80u) && shift <= 7 * MAX_VARINT_BYTES && sum + value < n;
    sum += (u32)value + 1;
    return sum - 1;
  }
};

// Stage every lane's short span; an empty one takes no part. Two lanes load a sector, so that one
// instruction fetches it whole, and rows that share a sector mostly share the fetch. The barrier
// between listing and loading also waits until every lane has decoded its last row.
__device__ __forceinline__ StagedRow stage_short(Scratch& scratch, const Rows& rows, Span span) {
  const u64 first = span.begin >> 5;
  const u32 count = span.begin < span.end ? (u32)((span.end - 1 >> 5) - first) + 1 : 0;
  u32 end = count;
#pragma unroll
  for (u32 by = 1; by < 32; by <<= 1) {
    const u32 left = __shfl_up_sync(FULL_WARP, end, by);
    if (lane_id() >= by) end += left;
  }
  const u32 total = __shfl_sync(FULL_WARP, end, 31);
  for (u32 k = 0; k < count; k++) {
    const u64 sector = first + k << 5;
    scratch.sectors[end - count + k] =
        sector | (u64)(span.begin < sector + 16) | (u64)(span.end > sector + 16) << 1;
  }
  __syncwarp();
  for (u32 from = 0; from < total; from += 16) {
    const u32 i = from + (lane_id() >> 1), half = lane_id() & 1u;
    const u64 sector = i < total ? scratch.sectors[i] : 0;
    if (sector >> half & 1u)
      scratch.halves[2 * i + half] = load_half_sector(rows, (sector & ~31ull) + 16 * half);
    __syncwarp();   // a lane that ran ahead would load its half in another instruction
  }
  const u8* bytes = (const u8*)scratch.halves + 32 * (end - count) + (u32)(span.begin & 31u);
  return {bytes, (u32)(span.end - span.begin), 0, 0};
}

#endif
