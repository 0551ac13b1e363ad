// Short rows, one per lane. A warp copies the sectors of its 32 rows into shared memory, then each
// lane decodes its own row. The scratch memory belongs to one warp, so __syncwarp orders all
// accesses to it and no atomic is needed.
#ifndef OOCBFS_STAGED_CUH
#define OOCBFS_STAGED_CUH
#include "cuda/rows.cuh"

// Short rows touch at most two sectors.
#define SHORT_BYTES 32u

struct Scratch {
  uint4 halves[128];   // the row of lane i has two sectors from halves[4 * i] on
  u64 listed[64];      // sectors to load
};

// A sector to load is its offset in the tails. Bits 0 and 1 say which halves are needed, bits 2 and
// 3 belong to the caller, and the bits from PLACE_BIT on say where in the scratch it goes.
#define SECTOR_OFFSET (~31ull & ((1ull << PLACE_BIT) - 1))
#define PLACE_BIT 58u

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

__device__ __forceinline__ StagedRow start_row(const Scratch& scratch, Span span) {
  const u8* bytes = (const u8*)&scratch.halves[4 * lane_id()] + (u32)(span.begin & 31u);
  return {bytes, (u32)(span.end - span.begin), 0, 0};
}

// Sector k of the lane's span, as it is listed.
__device__ __forceinline__ u64 listed_sector(Span span, u32 k) {
  const u64 sector = (span.begin >> 5) + k << 5;
  return sector | (u64)(span.begin < sector + 16) | (u64)(span.end > sector + 16) << 1 |
         (u64)(2 * lane_id() + k) << PLACE_BIT;
}

// Where the lane lists its sectors, in the order of lanes; `total` gets the number of all.
__device__ __forceinline__ u32 first_listed(u32 count, u32& total) {
  u32 end = count;
#pragma unroll
  for (u32 by = 1; by < 32; by <<= 1) {
    const u32 left = __shfl_up_sync(FULL_WARP, end, by);
    if (lane_id() >= by) end += left;
  }
  total = __shfl_sync(FULL_WARP, end, 31);
  return end - count;
}

// Load what is listed, two lanes a sector, so that one instruction fetches it whole, and rows that
// share a sector mostly share the fetch. The barrier between listing and loading also waits until
// every lane has decoded its last row.
__device__ __forceinline__ void load_listed(Scratch& scratch, const Rows& rows, u32 total) {
  __syncwarp();
  for (u32 from = 0; from < total; from += 16) {
    const u32 i = from + (lane_id() >> 1), half = lane_id() & 1u;
    const u64 sector = i < total ? scratch.listed[i] : 0;
    if (sector >> half & 1u)
      scratch.halves[2 * (u32)(sector >> PLACE_BIT) + half] =
          load_half_sector(rows, (sector & SECTOR_OFFSET) + 16 * half);
    __syncwarp();   // a lane that ran ahead would load its half in another instruction
  }
}

// Stage every lane's short span; an empty one takes no part.
__device__ __forceinline__ StagedRow stage_short(Scratch& scratch, const Rows& rows, Span span) {
  const u32 count = (u32)count_sectors(span);
  u32 total;
  const u32 first = first_listed(count, total);
  for (u32 k = 0; k < count; k++) scratch.listed[first + k] = listed_sector(span, k);
  load_listed(scratch, rows, total);
  return start_row(scratch, span);
}

// Stage the first sector of every lane's short span. The row it gives has the varints that end
// there; the others follow by stage_rest. A sector that the row of the lane before ends in is
// loaded for that as well.
__device__ __forceinline__ StagedRow stage_first(Scratch& scratch, const Rows& rows, Span span) {
  const u32 count = (u32)count_sectors(span);
  const u64 first = span.begin >> 5, last = count ? first + count - 1 : ~0ull;
  const u64 left_last = __shfl_up_sync(FULL_WARP, last, 1);
  u32 total;
  const u32 place = first_listed(count != 0, total);
  if (count)
    scratch.listed[place] = listed_sector(span, 0) | (u64)(lane_id() && left_last == first);
  load_listed(scratch, rows, total);
  StagedRow row = start_row(scratch, span);
  if (count == 2) {
    row.length = 32u - (u32)(span.begin & 31u);
    while (row.length && row.bytes[row.length - 1] & 0x80u) row.length--;
  }
  return row;
}

// Stage the second sector of the rows that go on, and give them their whole length. What the next
// lane's row begins in is there already.
__device__ __forceinline__ void stage_rest(Scratch& scratch, StagedRow& row, const Rows& rows,
                                           Span span, bool goes_on) {
  const u64 first = span.begin < span.end ? span.begin >> 5 : ~0ull;
  const u64 right_first = __shfl_down_sync(FULL_WARP, first, 1);
  const bool is_there = lane_id() < 31 && right_first == first + 1;
  u32 total;
  const u32 place = first_listed(goes_on && !is_there, total);
  if (goes_on && !is_there) scratch.listed[place] = listed_sector(span, 1);
  if (goes_on && is_there) {   // a half that is not needed may be garbage
    const uint4* next = &scratch.halves[4 * (lane_id() + 1)];
    scratch.halves[4 * lane_id() + 2] = next[0];
    scratch.halves[4 * lane_id() + 3] = next[1];
  }
  load_listed(scratch, rows, total);
  if (goes_on) row.length = (u32)(span.end - span.begin);
}

#endif
