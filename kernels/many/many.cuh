// Traversals from up to 64 sources at once: what their kernels share.
//
// Every vertex has three words in which bit s belongs to source s: seen since the start, in the
// frontier, or found for the next one. In a level some sources push, along the rows of the frontier,
// and the others pull: every vertex asks its neighbours for those it has not seen. Seen and frontier
// change only in many_settle, so all other kernels may read them as they like.
#ifndef OOCBFS_MANY_CUH
#define OOCBFS_MANY_CUH
#include "cuda/decode.cuh"
#include "cuda/staged.cuh"

// `planes` hold the bits of each vertex's level plus 1, one plane a bit and one bit of a word a source, so
// that 0 is "not reached"; they are null if nobody wants levels. Behind the control words lie two sums for
// each source, of the vertices and of the bytes of the rows in its frontier. The host clears them all
// before each level.
struct Many {
  u64* seen;
  u64* front;
  u64* next;
  u64* planes;
  u32* queue;
  u32* pending;
  u32* hubs;
  u32* hub_segments;
  u64* control;
};
static_assert(sizeof(Many) == MANY_STRUCT_BYTES, "Many differs from its numpy dtype");

__device__ __forceinline__ void report_damage(const Many& many) {
  atomicOr(&many.control[CONTROL_DAMAGED], 1ull);
}

// Give the vertex to the sources that have not seen it.
__device__ __forceinline__ void mark(const Many& many, u32 vertex, u64 sources, u32 n) {
  if (vertex >= n) {
    report_damage(many);
    return;
  }
  const u64 fresh = sources & ~many.seen[vertex];
  u64* word = &many.next[vertex];
  // Others may have marked it already: looking is cheaper than the atomic.
  if (fresh & ~*(volatile u64*)word) atomicOr(word, fresh);
}

// Push along one independently decodable span by the whole warp.
__device__ __forceinline__ void push_span(const Many& many, const Rows& rows, Span span,
                                          u64 sources) {
  Cursor cursor = start_cursor<32>(span);
  while (!cursor.done()) {
    Decoded decoded;
    if (!decode_chunk<32>(decoded, cursor, rows, true)) report_damage(many);
#pragma unroll
    for (u32 k = 0; k < 4; k++)
      if (decoded.present >> k & 1u) mark(many, decoded.ids[k], sources, rows.num_vertices);
  }
}

// All lanes' words together.
__device__ __forceinline__ u64 join_words(u64 word) {
  for (int by = 16; by; by >>= 1) word |= __shfl_xor_sync(FULL_WARP, word, by);
  return word;
}

#endif
