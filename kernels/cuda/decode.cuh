// Delta-varint decoding by a group of lanes.
//
// A chunk is LANES aligned words. Lane i holds word i, and gets the ids of the varints that end in
// it. Bytes before the span become 00 (each ends a varint, none is a value); bytes after it become
// 80 (no varint ends there). A varint has at most 9 bytes, so the two words before a lane's own
// hold the rest of any varint that ends in it; only its first 5 bytes carry a value.
//
// Ids are sums modulo 2^32. Callers compare each with n before they use it. A value of n or more
// is reported, so the first wrong id is less than 2^32 larger than the id before it: if it wraps
// around, it is smaller than that id, which is reported too. Lanes share nothing but registers: no
// atomics.
#ifndef OOCBFS_DECODE_CUH
#define OOCBFS_DECODE_CUH
#include "cuda/rows.cuh"

// Ids that one lane decoded from one word.
struct Decoded {
  u32 ids[4];
  u32 present;   // bit k: ids[k] is one
};

// How far a group has come in a span that decodes independently (a row, or a segment of one).
struct Cursor {
  Span span;
  u64 chunk;        // aligned offset of the next chunk
  u32 sum;          // last id + 1
  u32 word1, word2; // the chunk's last word and the one before it

  __device__ __forceinline__ bool done() const { return chunk >= span.end; }
};

template <u32 LANES>
__device__ __forceinline__ Cursor start_cursor(Span span) {
  return {span, span.begin & ~(u64)(4 * LANES - 1), 0, 0, 0};
}

__device__ __forceinline__ u32 mask_word(u32 word, u64 offset, Span span) {
  if (offset < span.begin) word &= 0xffffffffu << (8 * (u32)(span.begin - offset));
  if (offset + 4 > span.end) {
    const u32 kept = (1u << (8 * (u32)(span.end - offset))) - 1u;
    word = (word & kept) | (0x80808080u & ~kept);
  }
  return word;
}

// Join the 7-bit groups of up to 5 bytes.
__device__ __forceinline__ u32 join_groups(u64 bytes) {
  return (u32)((bytes & 0x7f) | (bytes >> 1 & 0x7f << 7) | (bytes >> 2 & 0x7f << 14) |
               (bytes >> 3 & 0x7f << 21) | (bytes >> 4 & 0xfull << 28));
}

// Value of the varint that ends in byte `last` of the word; `before` are the 8 bytes before the
// word. `lost` gets the bits of the value that do not fit into 32.
__device__ __forceinline__ u32 varint_ending_at(u32 last, u32 word, u64 before, u64& lost) {
  const u64 preceding = last ? before >> (8 * last) | (u64)word << (64 - 8 * last) : before;
  const u64 stops = ~preceding & 0x8080808080808080ull;
  const u32 more = (u32)__clzll((long long)stops) >> 3;   // bytes of the varint before its last
  u64 bytes = more ? preceding >> (64 - 8 * more) : 0;
  const u64 end = word >> (8 * last) & 0x7fu;
  if (more < 8)
    bytes |= end << (8 * more);
  else
    lost |= end;
  lost |= bytes & 0x7f7f7f7000000000ull;
  return join_groups(bytes);
}

// Whether the word continues a varint past MAX_VARINT_BYTES, which no valid row does. Only the
// first `length` bytes of the word lie in the span.
__device__ __forceinline__ bool is_endless(u32 word, u64 before, u64 length) {
  const u32 stop = (u32)__ffs((int)(~word & 0x80808080u));
  u32 more = stop ? (stop - 1) >> 3 : 4;
  if (more > length) more = (u32)length;
  const u64 stops = ~before & 0x8080808080808080ull;
  return more && more + ((u32)__clzll((long long)stops) >> 3) >= MAX_VARINT_BYTES;
}

// Decode one chunk. All lanes of the warp call this together; groups that are not `active` load
// and decode nothing. Returns false in a lane that sees damage: a span that ends inside a varint,
// a varint that is too long, a value of n or more, or an id that wraps around.
template <u32 LANES>
__device__ __forceinline__ bool decode_chunk(Decoded& decoded, Cursor& cursor, const Rows& rows,
                                             bool active) {
  const u32 lane = lane_id() & (LANES - 1);
  const u64 offset = cursor.chunk + 4 * lane;
  const Span span = cursor.span;
  u32 word = 0x80808080u;
  bool whole = true;
  if (active) {
    if (offset + 4 <= span.begin) {
      word = 0;
    } else if (offset < span.end) {
      word = mask_word(load_word(rows, offset), offset, span);
      if (offset + 4 >= span.end)
        whole = !(word >> (8 * (u32)(span.end - 1 - offset)) & 0x80u);
    }
  }
  u32 word1 = __shfl_up_sync(FULL_WARP, word, 1, LANES);
  u32 word2 = __shfl_up_sync(FULL_WARP, word, 2, LANES);
  if (lane == 0) word1 = cursor.word1;
  if (lane == 0) word2 = cursor.word2;
  if (lane == 1) word2 = cursor.word1;
  const u64 before = (u64)word1 << 32 | word2;
  if (active && offset < span.end && is_endless(word, before, span.end - offset)) whole = false;

  u32 total = 0;
  u64 lost = 0;
  decoded.present = 0;
#pragma unroll
  for (u32 k = 0; k < 4; k++) {
    const bool ends = !(word >> (8 * k) & 0x80u) && offset + k >= span.begin && active;
    if (ends) {
      const u32 value = varint_ending_at(k, word, before, lost);
      whole = whole && value < rows.num_ids;
      total += value + 1;
    }
    decoded.ids[k] = total;
    decoded.present |= (u32)ends << k;
  }
  u32 inclusive = total;
#pragma unroll
  for (u32 by = 1; by < LANES; by <<= 1) {
    const u32 left = __shfl_up_sync(FULL_WARP, inclusive, by, LANES);
    if (lane >= by) inclusive += left;
  }
  u32 last = cursor.sum + inclusive - total;   // last id + 1, as in the cursor
  const u32 base = last - 1;
#pragma unroll
  for (u32 k = 0; k < 4; k++) {
    decoded.ids[k] += base;
    whole = whole && decoded.ids[k] + 1 >= last;
    last = decoded.ids[k] + 1;
  }

  cursor.sum += __shfl_sync(FULL_WARP, inclusive, LANES - 1, LANES);
  cursor.word1 = __shfl_sync(FULL_WARP, word, LANES - 1, LANES);
  cursor.word2 = __shfl_sync(FULL_WARP, word, LANES - 2, LANES);
  cursor.chunk += 4 * LANES;
  return whole && !lost;
}

// Decode one span by the whole warp. All lanes together call visit(decoded) for each word of theirs.
// Lanes that see damage call damaged().
template <class Damaged, class Visit>
__device__ __forceinline__ void decode_span(const Rows& rows, Span span, Damaged damaged,
                                            Visit visit) {
  Cursor cursor = start_cursor<32>(span);
  while (!cursor.done()) {
    Decoded decoded;
    if (!decode_chunk<32>(decoded, cursor, rows, true)) damaged();
    visit(decoded);
  }
}

// Segment `number` of a row; a row of at most SEGMENT_BYTES is its own only segment.
__device__ __forceinline__ Span segment_span(Span row, u64 number) {
  const u64 begin = row.begin + number * SEGMENT_BYTES;
  return {begin, row.end - begin > SEGMENT_BYTES ? begin + SEGMENT_BYTES : row.end};
}

#endif
