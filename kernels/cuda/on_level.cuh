// Select vertices by their level. Pieces of tails from disk are ranges of vertices; the queue is
// not sorted, so it cannot tell which vertices of a range are in the frontier.
#ifndef OOCBFS_ON_LEVEL_CUH
#define OOCBFS_ON_LEVEL_CUH
#include "cuda/common.cuh"

// The level of a vertex, as a byte. A lane that expands the frontier may write it at the same time, which
// volatile declares: it replaces "not reached" by the level that is being found, and neither of
// the two is the frontier's. A vertex that searches has one lane, which alone writes its level.
__device__ __forceinline__ u32 level_of(const Search& search, u64 vertex) {
  return *(volatile u8*)&search.levels[vertex];
}

// The lane's vertex of the warp's turn in a range, if its level is this byte; else NO_VERTEX.
__device__ __forceinline__ u32 lane_on_level(const Search& search, u64 turn, u64 first_vertex,
                                             u64 num_vertices, u32 byte) {
  const u64 i = turn * 32 + lane_id();
  const bool on_level = i < num_vertices && level_of(search, first_vertex + i) == byte;
  return on_level ? (u32)(first_vertex + i) : NO_VERTEX;
}

#endif
