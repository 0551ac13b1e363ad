// From stored vertices to positions, which are the order of ids.
#ifndef OOCBFS_NAMES_CUH
#define OOCBFS_NAMES_CUH
#include "cuda/common.cuh"

// Without arrays, the host brings results into order, and takes them as they are stored. Vertices
// from num_vertices on have no edges and took no part.
struct Names {
  const u32* ranks;   // the stored vertex at each position
  const u32* order;   // the position of each stored vertex, for parents
  u64 num_vertices;
};
static_assert(sizeof(Names) == NAMES_STRUCT_BYTES, "Names differs from its numpy dtype");

// The stored vertex at a position, NO_VERTEX if it took no part.
__device__ __forceinline__ u32 stored_at(const Names& names, u64 position) {
  const u64 vertex = names.ranks ? names.ranks[position] : position;
  return vertex < names.num_vertices ? (u32)vertex : NO_VERTEX;
}

#endif
