// Where a row's tail lies, what reading it costs, and how its bytes are loaded. Rows never change,
// so all lanes read them without atomics.
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
  const u64 next = (u64)vertex + 1;
  return {rows.bases[vertex >> rows.shift] + rows.starts[vertex],
          rows.bases[next >> rows.shift] + rows.starts[next]};
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

// Bytes that reading the whole span moves over the bus, in sectors of 32.
__device__ __forceinline__ u64 slow_bytes(const Rows& rows, Span span) {
  if (span.begin == span.end) return 0;
  const u64 begin = span.begin & ~31ull, end = (span.end + 31) & ~31ull;
  const u64 from = begin > rows.fast_begin ? begin : rows.fast_begin;
  const u64 to = end < rows.fast_end ? end : rows.fast_end;
  return end - begin - (to > from ? to - from : 0);
}

// The bytes that expanding a vertex moves over the bus, and how many of them a cut can save: all
// segments of a row but the last may lie wholly before the cut (see skip_segments).
struct Cost {
  u64 bytes, skippable;

  __device__ __forceinline__ void add(const Rows& rows, u32 vertex) {
    const Span row = row_span(rows, vertex);
    bytes += slow_bytes(rows, row);
    const u64 length = row.end - row.begin;
    if (length > SEGMENT_BYTES) {
      const u64 last_segment = row.begin + (length - 1) / SEGMENT_BYTES * SEGMENT_BYTES;
      skippable += slow_bytes(rows, {row.begin, last_segment});
    }
  }
};

// Add the lanes' costs to two neighbouring control words.
__device__ __forceinline__ void add_cost(u64* words, const Cost& cost) {
  add_total(&words[0], cost.bytes);
  add_total(&words[1], cost.skippable);
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
