// Vertices found by their level, where no list of them is sorted.
#ifndef OOCBFS_ON_LEVEL_CUH
#define OOCBFS_ON_LEVEL_CUH
#include "cuda/common.cuh"

// The level of a vertex, which another lane may be about to write: what it writes is neither the
// frontier's level nor "not reached", and whoever sees the old value sees a vertex still to be found.
__device__ __forceinline__ u32 level_of(const Search& search, u64 vertex) {
  return *(volatile u32*)&search.levels[vertex];
}

// The lane's vertex of the warp's turn in a range, if it is on this level; else NO_VERTEX.
__device__ __forceinline__ u32 lane_on_level(const Search& search, u64 turn, u64 first_vertex,
                                             u64 num_vertices, u32 level) {
  const u64 i = turn * 32 + lane_id();
  const bool on_level = i < num_vertices && level_of(search, first_vertex + i) == level;
  return on_level ? (u32)(first_vertex + i) : NO_VERTEX;
}

#endif
