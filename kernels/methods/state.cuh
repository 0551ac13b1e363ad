// What the kernels of all methods share: their arrays, their words, what they count.
//
// These kernels are kept apart from ours: a method is put together from a few sources, whose axes
// (AXIS_...) are chosen by -D options from kernels/methods/axes.py. Headers know no axis, so that
// one build can hold a source several times.
//
// Levels are read and written while other threads write them: each such access is volatile, which
// says that the race is meant. A vertex that two threads take at the same time gets the same level
// from both, and a parent from one of them: both are right.
#ifndef OOCBFS_METHODS_STATE_CUH
#define OOCBFS_METHODS_STATE_CUH
#include "cuda/decode.cuh"

#define NO_LEVEL 0xffffffffu

struct MethodState {
  u32* levels;
  u32* parents;
  u32* queue;               // of vertices: the frontier
  u32* next_queue;
  u32* edges;               // the edge queue: neighbours of the frontier, not looked at yet
  u32* edge_parents;        // whose neighbours they are
  u32* next_edges;
  u32* next_edge_parents;
  u32* flags;               // one word a vertex: in the frontier
  u32* next_flags;
  u32* mask;                // a bit a vertex: visited, as far as known
  u32* bits;                // a bit a vertex: in the frontier
  u32* counts;              // what is scanned, and then where each item writes
  u32* sums;                // of the tiles of counts, and then what lies before each
  u32* list;                // unvisited vertices, ascending
  u32* block;               // edges that were copied to the device
  u64* words;
  u64* tallies;
  const u64* out_offsets;   // where the plain rows of out-neighbours begin
  u64 queue_capacity;
  u64 edge_capacity;
};
static_assert(sizeof(MethodState) == METHOD_STATE_STRUCT_BYTES, "differs from its numpy dtype");

// Rows of one direction. Neighbours are in host memory: plain ones in `columns`, compressed ones in
// the heads and tails of `packed`. What says where a row lies is in device memory.
struct MethodRows {
  Rows packed;
  const u64* offsets;
  const u32* columns;
};
static_assert(sizeof(MethodRows) == METHOD_ROWS_STRUCT_BYTES, "MethodRows differs from its dtype");

// What a lane counts; no method looks at it.
struct Tally {
  u64 examined, won, lost, queued, edges_queued;
};

__device__ __forceinline__ void add_tally(const MethodState& t, const Tally& tally) {
  add_total(&t.tallies[TALLY_EXAMINED], tally.examined);
  add_total(&t.tallies[TALLY_WON], tally.won);
  add_total(&t.tallies[TALLY_LOST], tally.lost);
  add_total(&t.tallies[TALLY_QUEUED], tally.queued);
  add_total(&t.tallies[TALLY_EDGES_QUEUED], tally.edges_queued);
}

__device__ __forceinline__ u32 level_of(const MethodState& t, u32 vertex) {
  return *(volatile u32*)&t.levels[vertex];
}

template <bool PARENTS>
__device__ __forceinline__ void set_level(const MethodState& t, u32 vertex, u32 parent, u32 level) {
  *(volatile u32*)&t.levels[vertex] = level;
  if (PARENTS) *(volatile u32*)&t.parents[vertex] = parent;
}

__device__ __forceinline__ void set_changed(const MethodState& t) {
  *(volatile u64*)&t.words[WORD_CHANGED] = 1;
}

__device__ __forceinline__ void report_damaged_row(const MethodState& t) {
  atomicOr(&t.words[WORD_DAMAGED], 1ull);
}

__device__ __forceinline__ u64 out_degree(const MethodState& t, u32 vertex) {
  return t.out_offsets[(u64)vertex + 1] - t.out_offsets[vertex];
}

// Tiles of a block's size: every thread of a block goes through the same ones.
__device__ __forceinline__ Strided<u64> tiles(u64 count) {
  return grid_stride((count + blockDim.x - 1) / blockDim.x, blockDim.x);
}

#endif
