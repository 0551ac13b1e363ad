// Graph500's rules for what a search found, as far as arcs are looked at.
//
// An arc from a vertex that was expanded leads to one that was reached, at most one level further.
// Every vertex but the sources is one level further than some vertex that has an arc to it: than
// its parent, where parents are wanted. Such an arc confirms the vertex, by a bit in `confirmed`,
// which lanes set by an atomic. check_found counts those that nothing confirmed.
#ifndef OOCBFS_CHECK_CUH
#define OOCBFS_CHECK_CUH
#include "cuda/decode.cuh"
#include "cuda/on_level.cuh"
#include "cuda/staged.cuh"

// Where a check writes: bits of vertices, and how often a rule is broken.
struct Checked {
  u32* confirmed;
  u64* broken;
};
static_assert(sizeof(Checked) == CHECKED_STRUCT_BYTES, "Checked differs from its numpy dtype");

// The level of a vertex, NO_VERTEX if it was not reached; searches of fewer than LEVEL_PERIOD
// levels alone are checked, so that a byte is a level.
__device__ __forceinline__ u32 found_level(const Search& search, u64 vertex) {
  const u32 byte = level_of(search, vertex);
  return byte == NOT_REACHED ? NO_VERTEX : byte;
}

__device__ __forceinline__ void confirm(const Checked& checked, u32 vertex) {
  const u32 bit = 1u << (vertex & 31u);
  u32* word = &checked.confirmed[vertex >> 5];
  if (!(*(volatile u32*)word & bit)) atomicOr(word, bit);   // a read is cheaper
}

// Look at an arc; returns how many rules it breaks.
__device__ __forceinline__ u32 check_arc(const Search& search, const Checked& checked, u32 from,
                                         u32 from_level, u32 to, u32 n) {
  if (to >= n) return 1;
  const u32 level = found_level(search, to);
  bool confirms = level == from_level + 1;
#if WITH_PARENTS
  confirms = confirms && search.parents[to] == from;
#endif
  if (confirms) confirm(checked, to);
  return level > from_level + 1;   // or not reached, which is the largest number
}

// One independently decodable span by the whole warp.
__device__ __forceinline__ u32 check_span(const Search& search, const Checked& checked,
                                          const Rows& rows, Span span, u32 from, u32 from_level) {
  u32 broken = 0;
  decode_span(
      rows, span, [&] { broken++; },
      [&](const Decoded& decoded) {
#pragma unroll
        for (u32 k = 0; k < 4; k++)
          if (decoded.present >> k & 1u)
            broken +=
                check_arc(search, checked, from, from_level, decoded.ids[k], rows.num_ids);
      });
  return broken;
}

#endif
