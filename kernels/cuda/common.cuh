// What all kernels share: widths, the layout of their arguments, and the one grid-stride helper.
//
// NVRTC has no standard headers, so the widths are typedefs. Numbers that Python knows too
// (SEGMENT_BYTES, BLOCK_THREADS, CONTROL_*, *_STRUCT_BYTES) arrive as -D options from
// kernels/cuda/source.py, so that they are written down once.
#ifndef OOCBFS_COMMON_CUH
#define OOCBFS_COMMON_CUH

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define FULL_WARP 0xffffffffu
#define NO_VERTEX 0xffffffffu
// Bytes that are no level: see level_after.
#define NOT_REACHED 0xffu
#define LONG_AGO 0xfeu

// One direction of the graph. Heads and starts live in device memory. Tails live in host memory,
// except for the device range [fast_begin, fast_end), which is copied to `fast`. Both ends of the
// range are multiples of 128, so a sector lies wholly inside or outside. A launch reads the
// segments that begin in [readable_begin, readable_end): all of them, unless the host cannot hold
// all tails.
struct Rows {
  const u32* heads;
  const u32* starts;
  const u64* bases;
  const u8* slow;
  const u8* fast;
  u64 fast_begin;
  u64 fast_end;
  u64 readable_begin;
  u64 readable_end;
  u32 num_vertices;
  u32 shift;
  u32 num_ids;   // neighbours are below it: num_vertices, unless devices have shards
};
static_assert(sizeof(Rows) == ROWS_STRUCT_BYTES, "Rows differs from its numpy dtype");

// The state of one search. A vertex enters the queue once, so the queue holds the frontiers of
// all levels in order. Bottom-up steps test `visited`, which does not change during them.
// `claimed` is `visited` plus what this level found, and may be the same memory in a top-down
// level. Where several devices have a shard each, all of this is about a device's own vertices,
// by their rows, and neighbours are ids of all: see devices/block_cyclic.cuh.
struct Search {
  u8* levels;             // see level_after; a multiple of 4 of them
  u32* parents;
  u32* queue;
  u32* pending;
  u32* visited;
  u32* claimed;
  u32* hubs;
  u32* hub_segments;
  u64* control;
  u32* level_ends;
  u32* expanded_blocks;   // which blocks of tails a level needs from disk, if it is expanded
  u32* searched_blocks;   // and if what is left is searched
  u32* cuts;              // the vertices that divide the sums of PENDING_*_BYTES
  u64 first_target;       // the cut: vertices before it search, so hubs skip segments before it
  u64* cache_tags;        // of small_levels: see bfs/cached.cuh
  uint4* cache_data;
  u64 cache_sectors;
  u32* reached;           // of several devices: what was visited when all told each other
};
static_assert(sizeof(Search) == SEARCH_STRUCT_BYTES, "Search differs from its numpy dtype");

// Kernels know a level as vertices keep it: a byte, modulo LEVEL_PERIOD. The queue tells the levels
// of a deep search apart in the end.
__device__ __forceinline__ u32 level_after(u32 level) {
  return level + 1 == LEVEL_PERIOD ? 0 : level + 1;
}
__device__ __forceinline__ u32 level_before(u32 level) {
  return level ? level - 1 : LEVEL_PERIOD - 1;
}

__device__ __forceinline__ u32 lane_id() { return threadIdx.x & 31u; }
__device__ __forceinline__ u32 lanes_below() { return (1u << lane_id()) - 1u; }
__device__ __forceinline__ u32 warp_in_block() { return threadIdx.x >> 5; }

// The numbers first, first + step, ... below a count: `for (u64 i : grid_stride(n))`.
template <class Number>
class Strided {
 public:
  struct Position {
    Number index, step;
    __device__ __forceinline__ Number operator*() const { return index; }
    __device__ __forceinline__ void operator++() { index += step; }
    __device__ __forceinline__ bool operator!=(Number count) const { return index < count; }
  };
  __device__ __forceinline__ Strided(Number first, Number step, Number count)
      : first_{first, step}, count_(count) {}
  __device__ __forceinline__ Position begin() const { return first_; }
  __device__ __forceinline__ Number end() const { return count_; }

 private:
  Position first_;
  Number count_;
};

// Each number goes to one group of `lanes` consecutive threads of the grid (1: a thread; 32: a
// warp). The groups of a warp may end at different times, so collectives belong into warp_stride.
__device__ __forceinline__ Strided<u64> grid_stride(u64 count, u32 lanes = 1) {
  return Strided<u64>(((u64)blockIdx.x * blockDim.x + threadIdx.x) / lanes,
                      (u64)gridDim.x * blockDim.x / lanes, count);
}
__device__ __forceinline__ Strided<u64> warp_stride(u64 count) { return grid_stride(count, 32u); }

// The same for at most 2^31 turns of a warp, where all warps of a block take equally many: the turn
// of its first warp; those of the others follow, and may lie past the end.
__device__ __forceinline__ Strided<u32> block_turns(u32 count) {
  const u32 warps = blockDim.x / 32u;
  return Strided<u32>(blockIdx.x * warps, gridDim.x * warps, count);
}

// How many numbers from `begin` on are before both ends.
__device__ __forceinline__ u64 count_between(u64 begin, u64 end, u64 other_end) {
  const u64 last = end < other_end ? end : other_end;
  return begin < last ? last - begin : 0;
}

__device__ __forceinline__ bool test_bit(const u32* bitmap, u32 v) {
  return bitmap[v >> 5] >> (v & 31u) & 1u;
}

__device__ __forceinline__ void report_damage(const Search& search) {
  atomicOr(&search.control[CONTROL_DAMAGED], 1ull);
}

// Add the lanes' numbers to a control word with one atomic.
__device__ __forceinline__ void add_total(u64* total, u64 share) {
  for (u32 by = 16; by; by >>= 1) share += __shfl_down_sync(FULL_WARP, share, by);
  if (lane_id() == 0 && share) atomicAdd(total, share);
}

// The lane's vertex in the warp's turn through list[begin:end], NO_VERTEX past the end. Only the
// first lanes have one where a warp takes fewer vertices than it has lanes.
__device__ __forceinline__ u32 lane_vertex(const u32* list, u64 begin, u64 end, u64 turn,
                                           u32 each = 32) {
  const u64 i = begin + turn * each + lane_id();
  return lane_id() < each && i < end ? list[i] : NO_VERTEX;
}

// Append those of every lane's vertices whose bit is set in `chosen`: first the first of all lanes,
// then the second. One atomic reserves the positions; lane 0 tells the others.
template <u32 COUNT>
__device__ __forceinline__ void append(u32* list, u64* count, u64 base, u32 chosen,
                                       const u32 (&vertices)[COUNT]) {
  u32 lanes[COUNT], total = 0;
#pragma unroll
  for (u32 k = 0; k < COUNT; k++) {
    lanes[k] = __ballot_sync(FULL_WARP, chosen >> k & 1u);
    total += (u32)__popc(lanes[k]);
  }
  if (!total) return;
  u64 position = 0;
  if (lane_id() == 0) position = atomicAdd(count, (u64)total);
  position = __shfl_sync(FULL_WARP, position, 0) - base;
#pragma unroll
  for (u32 k = 0; k < COUNT; k++) {
    if (chosen >> k & 1u) list[position + __popc(lanes[k] & lanes_below())] = vertices[k];
    position += __popc(lanes[k]);
  }
}
__device__ __forceinline__ void append(u32* list, u64* count, u64 base, bool chosen, u32 vertex) {
  const u32 vertices[1] = {vertex};
  append(list, count, base, (u32)chosen, vertices);
}

#endif
