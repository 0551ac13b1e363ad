// From stored vertices to positions, which are the order of ids.
#ifndef OOCBFS_TO_IDS_CUH
#define OOCBFS_TO_IDS_CUH
#include "cuda/common.cuh"

// Without arrays, the host brings results into order, and takes them as they are stored. Vertices
// from num_vertices on have no edges and took no part.
struct ToIds {
  const u32* stored_at;   // the stored vertex at each position
  const u32* order;   // the position of each stored vertex, for parents
  u64 num_vertices;
};
static_assert(sizeof(ToIds) == TO_IDS_STRUCT_BYTES, "ToIds differs from its numpy dtype");

// The stored vertex at a position, NO_VERTEX if it took no part.
__device__ __forceinline__ u32 stored_at(const ToIds& to_ids, u64 position) {
  const u64 vertex = to_ids.stored_at ? to_ids.stored_at[position] : position;
  return vertex < to_ids.num_vertices ? (u32)vertex : NO_VERTEX;
}

#endif
