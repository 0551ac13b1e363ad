// Trees of labels, as the components_* kernels join them; the numba twin is components/forest.py.
//
// A label names a vertex of the same component that is not larger. A vertex whose label is itself
// is a root. Labels only lead to smaller vertices, so in any order of writes there are no cycles.
// An atomic minimum hooks a root below another. A lane that comes too late continues with the
// label that it found there, so that no edge is lost. All other writes replace a label by one
// further up the same tree: if such a write is lost, or an old label is read, that only costs
// steps. Volatile declares such races.
#ifndef OOCBFS_COMPONENTS_FOREST_CUH
#define OOCBFS_COMPONENTS_FOREST_CUH
#include "cuda/staged.cuh"

struct Forest {
  u32* labels;
  u32* samples;
  u64* control;
};
static_assert(sizeof(Forest) == FOREST_STRUCT_BYTES, "Forest differs from its numpy dtype");

__device__ __forceinline__ u32 label_of(const Forest& forest, u32 v) {
  return *(volatile u32*)&forest.labels[v];
}

__device__ __forceinline__ void shorten(const Forest& forest, u32 v, u32 label) {
  *(volatile u32*)&forest.labels[v] = label;
}

__device__ __forceinline__ u32 find_root(const Forest& forest, u32 v) {
  u32 label = label_of(forest, v);
  while (label != v) {
    v = label;
    label = label_of(forest, v);
  }
  return v;
}

// Join the trees of two vertices. Returns a vertex of the joint tree: its root, if no other lane
// joins it meanwhile.
__device__ __forceinline__ u32 link(const Forest& forest, u32 a, u32 b) {
  while (a != b) {
    const u32 high = a > b ? a : b, low = a > b ? b : a;
    u32 above = label_of(forest, high);
    if (above == high) {
      above = atomicMin(&forest.labels[high], low);
      if (above == high) return low;
    } else {
      // Halve the way for later lanes.
      const u32 parent = above;
      above = label_of(forest, parent);
      if (above != parent) shorten(forest, high, above);
    }
    a = above;
    b = low;
  }
  return a;
}

__device__ __forceinline__ void report_damage(const Forest& forest) {
  atomicOr(&forest.control[FOREST_DAMAGED], 1ull);
}

// What a lane sums up and adds to the control words once.
struct Looked {
  u64 edges, bytes;
};

__device__ __forceinline__ void add_looked(const Forest& forest, const Looked& looked) {
  add_total(&forest.control[FOREST_EDGES], looked.edges);
  add_total(&forest.control[FOREST_TAIL_BYTES], looked.bytes);
}

#endif
