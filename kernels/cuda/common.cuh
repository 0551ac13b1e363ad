// What all kernels share: widths, the layout of their arguments, and the one grid-stride helper.
//
// NVRTC has no standard headers, so the widths are typedefs. The numbers below that Python knows too
// (SEGMENT_BYTES, BLOCK_THREADS, CONTROL_*, *_STRUCT_BYTES) arrive as -D options from
// kernels/cuda_source.py, so that they are written down once.
#ifndef OOCBFS_COMMON_CUH
#define OOCBFS_COMMON_CUH

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define FULL_WARP 0xffffffffu
#define NO_VERTEX 0xffffffffu

// One direction of the graph. Heads and starts live in device memory; the tails in host memory except
// for the window [fast_begin, fast_end), whose copy starts at `fast`. Both ends of the window are
// multiples of 128, so that a sector lies wholly inside or outside. A launch sees the segments that
// begin in [served_begin, served_end): all of them, unless the host cannot hold all tails.
struct Rows {
  const u32* heads;
  const u32* starts;
  const u64* bases;
  const u8* slow;
  const u8* fast;
  u64 fast_begin;
  u64 fast_end;
  u64 served_begin;
  u64 served_end;
  u32 num_vertices;
  u32 shift;
};
static_assert(sizeof(Rows) == ROWS_STRUCT_BYTES, "Rows differs from its numpy dtype");

// The state of one traversal. A vertex enters the queue once, so the frontiers of all levels lie in
// it one behind the other. `visited` is what bottom-up steps test and does not change during them;
// `claimed` is the same plus what this level found, and may be the same memory in a top-down level.
struct Search {
  u32* levels;
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
  u32* cuts;              // the vertices that divide the sums of PENDING_BYTES
  u64 first_target;       // neighbours before it are not reached for: they search
};
static_assert(sizeof(Search) == SEARCH_STRUCT_BYTES, "Search differs from its numpy dtype");

__device__ __forceinline__ u32 lane_id() { return threadIdx.x & 31u; }
__device__ __forceinline__ u32 lanes_below() { return (1u << lane_id()) - 1u; }
__device__ __forceinline__ u32 warp_in_block() { return threadIdx.x >> 5; }

// Positions first, first + step, … below a count: `for (u64 i : grid_stride(n))`.
class Strided {
 public:
  struct Position {
    u64 at, step;
    __device__ __forceinline__ u64 operator*() const { return at; }
    __device__ __forceinline__ void operator++() { at += step; }
    __device__ __forceinline__ bool operator!=(u64 count) const { return at < count; }
  };
  __device__ __forceinline__ Strided(u64 first, u64 step, u64 count)
      : first_{first, step}, count_(count) {}
  __device__ __forceinline__ Position begin() const { return first_; }
  __device__ __forceinline__ u64 end() const { return count_; }

 private:
  Position first_;
  u64 count_;
};

// Each position goes to one group of `lanes` consecutive threads of the grid (1: a thread; 32: a
// warp). Groups of one warp may run out at different times: collectives belong into warp_stride.
__device__ __forceinline__ Strided grid_stride(u64 count, u32 lanes = 1) {
  return Strided(((u64)blockIdx.x * blockDim.x + threadIdx.x) / lanes,
                 (u64)gridDim.x * blockDim.x / lanes, count);
}
__device__ __forceinline__ Strided warp_stride(u64 count) { return grid_stride(count, 32u); }

__device__ __forceinline__ bool test_bit(const u32* bitmap, u32 v) {
  return bitmap[v >> 5] >> (v & 31u) & 1u;
}

__device__ __forceinline__ void report_damage(const Search& search) {
  atomicOr(&search.control[CONTROL_DAMAGED], 1ull);
}

// Add the lanes' numbers to a control word with one atomic.
__device__ __forceinline__ void add_total(u64* total, u64 part) {
  for (u32 by = 16; by; by >>= 1) part += __shfl_down_sync(FULL_WARP, part, by);
  if (lane_id() == 0 && part) atomicAdd(total, part);
}

// Append the chosen lanes' vertices: one atomic reserves the places, the first lane tells the others.
__device__ __forceinline__ void append(u32* list, u64* count, u64 base, bool chosen, u32 vertex) {
  const u32 lanes = __ballot_sync(FULL_WARP, chosen);
  if (!lanes) return;
  u64 place = 0;
  if (lane_id() == 0) place = atomicAdd(count, (u64)__popc(lanes));
  place = __shfl_sync(FULL_WARP, place, 0) - base;
  if (chosen) list[place + __popc(lanes & lanes_below())] = vertex;
}

#endif
