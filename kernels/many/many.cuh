// Searches from up to 64 sources at once: what their kernels share (MS-BFS, Then et al., 2014).
//
// Every vertex has three words in which bit s belongs to source s: seen since the start, in the
// frontier, or found for the next frontier. In a level some sources go top-down, along the rows of
// the frontier; the others bottom-up: every vertex asks its neighbours for what it has not seen.
// `seen` and `frontier` change only in many_commit, so all other kernels read them without
// atomics.
#ifndef OOCBFS_MANY_CUH
#define OOCBFS_MANY_CUH
#include "cuda/decode.cuh"
#include "cuda/staged.cuh"

// `planes` hold the bits of each vertex's level plus 1: one plane a bit, and in it one bit of a
// word a source, so that 0 is "not reached". They are null if no levels are wanted. The control
// words are followed by two sums for each source: the vertices of its frontier and the bytes of
// their rows. The host clears them all before each level.
struct Many {
  u64* seen;
  u64* frontier;
  u64* next_frontier;
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

// Add the vertex to the next frontier of the sources that have not seen it. Several lanes may find
// one vertex, so this needs an atomic.
__device__ __forceinline__ void mark(const Many& many, u32 vertex, u64 sources, u32 n) {
  if (vertex >= n) {
    report_damage(many);
    return;
  }
  const u64 fresh = sources & ~many.seen[vertex];
  u64* word = &many.next_frontier[vertex];
  // Other lanes may have marked it already, and a read is cheaper than the atomic.
  if (fresh & ~*(volatile u64*)word) atomicOr(word, fresh);
}

// Go top-down along one independently decodable span by the whole warp.
__device__ __forceinline__ void top_down_span(const Many& many, const Rows& rows, Span span,
                                          u64 sources) {
  decode_span(
      rows, span, [&] { report_damage(many); },
      [&](const Decoded& decoded) {
#pragma unroll
        for (u32 k = 0; k < 4; k++)
          if (decoded.present >> k & 1u) mark(many, decoded.ids[k], sources, rows.num_vertices);
      });
}

// All lanes' words together.
__device__ __forceinline__ u64 join_words(u64 word) {
  for (int by = 16; by; by >>= 1) word |= __shfl_xor_sync(FULL_WARP, word, by);
  return word;
}

#endif
