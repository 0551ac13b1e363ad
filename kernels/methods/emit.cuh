// How what a level found gets into a queue. Positions past a queue's end are counted but not
// written: the host sees from the count that the queue was too small.
#ifndef OOCBFS_METHODS_EMIT_CUH
#define OOCBFS_METHODS_EMIT_CUH
#include "methods/state.cuh"

enum Emit {
  EMIT_NONE,     // the levels say it all
  EMIT_CHANGED,  // a word says that something was found
  EMIT_FLAGS,    // a flag a vertex, and nothing else
  EMIT_ATOMIC,   // an atomic for each find
  EMIT_WARP,     // an atomic for the finds of a warp
  EMIT_BLOCK,    // a scan over the block, and an atomic for its finds
  EMIT_COUNT,    // how many each item of the queue found
  EMIT_ASSIGN    // to the position that a scan gave the item
};

struct BlockScratch {
  u32 sums[32];
  u64 wide_sums[32];
  u64 base;
};

struct Queue {
  u32* items;
  u32* parents;   // of edges; null where nobody wants them
  u64* end;
  u64 capacity;

  __device__ __forceinline__ void write(u64 position, u32 item, u32 parent) const {
    if (position >= capacity) return;
    items[position] = item;
    if (parents) parents[position] = parent;
  }
};

__device__ __forceinline__ Queue vertex_queue(const MethodState& t) {
  return {t.next_queue, nullptr, &t.words[WORD_QUEUE_END], t.queue_capacity};
}
__device__ __forceinline__ Queue edge_queue(const MethodState& t) {
  return {t.next_edges, t.next_edge_parents, &t.words[WORD_EDGE_END], t.edge_capacity};
}

__device__ __forceinline__ void append_alone(const Queue& queue, bool chosen, u32 item) {
  if (chosen) queue.write(atomicAdd(queue.end, 1ull), item, NO_VERTEX);
}

// All lanes of the warp call this together.
__device__ __forceinline__ void append_warp(const Queue& queue, bool chosen, u32 item) {
  const u32 lanes = __ballot_sync(FULL_WARP, chosen);
  if (!lanes) return;
  u64 base = 0;
  if (lane_id() == 0) base = atomicAdd(queue.end, (u64)__popc(lanes));
  base = __shfl_sync(FULL_WARP, base, 0);
  if (chosen) queue.write(base + __popc(lanes & lanes_below()), item, NO_VERTEX);
}

// Up to 4 finds of each lane, with one atomic for all. All lanes of the warp call this together.
struct Finds {
  u32 items[4];
  u32 count;
};

__device__ __forceinline__ void append_finds(const Queue& queue, Finds& finds) {
  if (!__any_sync(FULL_WARP, finds.count)) return;
  u32 end = finds.count;
  for (u32 by = 1; by < 32; by <<= 1) {
    const u32 left = __shfl_up_sync(FULL_WARP, end, by);
    if (lane_id() >= by) end += left;
  }
  u64 base = 0;
  if (lane_id() == 31) base = atomicAdd(queue.end, (u64)end);
  base = __shfl_sync(FULL_WARP, base, 31) + end - finds.count;
  for (u32 k = 0; k < finds.count; k++) queue.write(base + k, finds.items[k], NO_VERTEX);
  finds.count = 0;
}

// All threads of the block call this together. The second barrier keeps the sums until all have
// read them.
__device__ __forceinline__ void append_block(BlockScratch& scratch, const Queue& queue,
                                             bool chosen, u32 item, u32 parent) {
  const u32 lanes = __ballot_sync(FULL_WARP, chosen);
  if (lane_id() == 0) scratch.sums[warp_in_block()] = (u32)__popc(lanes);
  __syncthreads();
  u32 before = 0, total = 0;
  for (u32 warp = 0; warp < blockDim.x / 32; warp++) {
    if (warp == warp_in_block()) before = total;
    total += scratch.sums[warp];
  }
  if (threadIdx.x == 0 && total) scratch.base = atomicAdd(queue.end, (u64)total);
  __syncthreads();
  if (chosen) queue.write(scratch.base + before + __popc(lanes & lanes_below()), item, parent);
}

// The sum of the numbers of all threads before this one, and of all. Blocks call it together.
__device__ __forceinline__ u64 scan_block(BlockScratch& scratch, u64 number, u64& total) {
  u64 inclusive = number;
  for (u32 by = 1; by < 32; by <<= 1) {
    const u64 left = __shfl_up_sync(FULL_WARP, inclusive, by);
    if (lane_id() >= by) inclusive += left;
  }
  if (lane_id() == 31) scratch.wide_sums[warp_in_block()] = inclusive;
  __syncthreads();
  u64 before = 0;
  total = 0;
  for (u32 warp = 0; warp < blockDim.x / 32; warp++) {
    if (warp == warp_in_block()) before = total;
    total += scratch.wide_sums[warp];
  }
  __syncthreads();
  return before + inclusive - number;
}

#endif
