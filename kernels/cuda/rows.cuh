// Where a row's tail lies, how many sectors it has in which memory, and how its bytes are loaded.
// Rows never change, so all lanes read them without atomics.
#ifndef OOCBFS_ROWS_CUH
#define OOCBFS_ROWS_CUH
#include "cuda/common.cuh"

struct Span {
  u64 begin, end;
};

// The owner lane's span, given to all lanes.
__device__ __forceinline__ Span share_span(Span span, int owner) {
  return {__shfl_sync(FULL_WARP, span.begin, owner),
          __shfl_sync(FULL_WARP, span.end, owner)};
}

__device__ __forceinline__ Span row_span(const Rows& rows, u32 vertex) {
  const u64 next = (u64)vertex + 1, base = rows.bases[vertex >> rows.shift];
  // Most rows end in the block of rows that they begin in.
  const u64 next_base = next >> rows.shift == vertex >> rows.shift ? base
                                                                   : rows.bases[next >> rows.shift];
  return {base + rows.starts[vertex], next_base + rows.starts[next]};
}

// Where the first segment of a row begins that does not begin before `offset`; the row's end if
// there is none. A row of at most SEGMENT_BYTES is one segment.
__device__ __forceinline__ u64 segment_from(Span row, u64 offset) {
  if (offset <= row.begin) return row.begin;
  const u64 begin =
      row.begin + (offset - row.begin + SEGMENT_BYTES - 1) / SEGMENT_BYTES * SEGMENT_BYTES;
  return begin < row.end ? begin : row.end;
}

// The segments of a row that this launch may read.
__device__ __forceinline__ Span readable_span(const Rows& rows, u32 vertex) {
  const Span row = row_span(rows, vertex);
  return {segment_from(row, rows.readable_begin), segment_from(row, rows.readable_end)};
}

__device__ __forceinline__ bool is_fast(const Rows& rows, u64 offset) {
  return offset - rows.fast_begin < rows.fast_end - rows.fast_begin;
}

// The sectors of 32 bytes that a span touches: all of them, and those in device memory.
__device__ __forceinline__ u64 count_sectors(Span span) {
  return span.begin < span.end ? (span.end - 1 >> 5) - (span.begin >> 5) + 1 : 0;
}
__device__ __forceinline__ u64 count_fast_sectors(const Rows& rows, Span span) {
  if (span.begin == span.end) return 0;
  const u64 begin = span.begin & ~31ull, end = (span.end + 31) & ~31ull;
  const u64 from = begin > rows.fast_begin ? begin : rows.fast_begin;
  const u64 to = end < rows.fast_end ? end : rows.fast_end;
  return to > from ? to - from >> 5 : 0;
}

// What a lane sums up of rows: their sectors over the bus and in device memory, and how many of
// each a cut can save. All segments of a row but the last may lie wholly before the cut (see
// skip_segments). The host knows what they cost. 2^32 sectors are 128 GB, more than one lane meets.
struct RowSectors {
  u32 slow, fast, skippable_slow, skippable_fast;

  __device__ __forceinline__ void add(const Rows& rows, u32 vertex) {
    add(rows, row_span(rows, vertex));
  }
  __device__ __forceinline__ void add(const Rows& rows, Span row) {
    const u32 in_fast = (u32)count_fast_sectors(rows, row);
    slow += (u32)count_sectors(row) - in_fast;
    fast += in_fast;
    const u64 length = row.end - row.begin;
    if (length > SEGMENT_BYTES) {
      const Span skippable = {row.begin,
                              row.begin + (length - 1) / SEGMENT_BYTES * SEGMENT_BYTES};
      const u32 skipped_fast = (u32)count_fast_sectors(rows, skippable);
      skippable_slow += (u32)count_sectors(skippable) - skipped_fast;
      skippable_fast += skipped_fast;
    }
  }
};

// The same of a whole search, as control words have them from some word on.
struct SectorTotals {
  u64 slow, fast, skippable_slow, skippable_fast;
};

// Add the lanes' sectors to neighbouring control words.
__device__ __forceinline__ void add_sectors(u64* words, const RowSectors& sectors) {
  add_total(&words[0], sectors.slow);
  add_total(&words[1], sectors.fast);
  add_total(&words[2], sectors.skippable_slow);
  add_total(&words[3], sectors.skippable_fast);
}

__device__ __forceinline__ u32 load_word(const Rows& rows, u64 offset) {
  if (is_fast(rows, offset)) return *(const u32*)(rows.fast + (offset - rows.fast_begin));
  return __ldg((const u32*)(rows.slow + offset));
}

__device__ __forceinline__ uint4 load_half_sector(const Rows& rows, u64 offset) {
  if (is_fast(rows, offset)) return *(const uint4*)(rows.fast + (offset - rows.fast_begin));
  return __ldg((const uint4*)(rows.slow + offset));
}

#endif
