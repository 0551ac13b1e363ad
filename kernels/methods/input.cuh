// Which vertices a launch works on, and how they are distributed to threads.
#ifndef OOCBFS_METHODS_INPUT_CUH
#define OOCBFS_METHODS_INPUT_CUH
#include "methods/state.cuh"

enum Input {
  INPUT_ALL,        // vertices whose level is asked for
  INPUT_FLAGS,      // those with a flag, which is taken down
  INPUT_QUEUE,
  INPUT_LIST,       // those of the list whose level is asked for
  INPUT_UNMARKED    // those without a bit in the mask
};

enum Balance {
  BALANCE_STRIDE,   // item i belongs to thread i, modulo the threads
  BALANCE_WORK,     // every thread takes the next item of a shared counter
  BALANCE_FETCH1,   // the first by the thread's number, then as above
  BALANCE_FETCH32,  // lane 0 takes 32 for its warp
  BALANCE_DONATE,   // so, and what is left of a row when 31 lanes are idle is shared
  BALANCE_RUNS      // each thread has a run of neighbouring items
};

template <Input INPUT>
__device__ __forceinline__ u32 input_vertex(const MethodState& t, u64 i, u64 count, u32 level) {
  if (i >= count) return NO_VERTEX;
  if (INPUT == INPUT_QUEUE) return t.queue[i];
  const u32 vertex = INPUT == INPUT_LIST ? t.list[i] : (u32)i;
  if (INPUT == INPUT_UNMARKED) return test_bit(t.mask, vertex) ? NO_VERTEX : vertex;
  if (INPUT == INPUT_FLAGS) {
    if (!t.flags[vertex]) return NO_VERTEX;
    t.flags[vertex] = 0;
    return vertex;
  }
  return level_of(t, vertex) == level ? vertex : NO_VERTEX;
}

// Distribute items 0 … count-1: lanes of a warp call take(i) together, with i >= count for a
// lane that has none.
template <Balance BALANCE, class Take>
__device__ __forceinline__ void distribute(const MethodState& t, u64 count, Take take) {
  const u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  const u64 num_threads = (u64)gridDim.x * blockDim.x;
  u64* cursor = &t.words[WORD_CURSOR];
  if (BALANCE == BALANCE_STRIDE) {
    for (u64 turn : warp_stride((count + 31) / 32)) take(turn * 32 + lane_id());
  } else if (BALANCE == BALANCE_WORK || BALANCE == BALANCE_FETCH1) {
    const u64 first = BALANCE == BALANCE_WORK ? 0 : num_threads;
    u64 i = BALANCE == BALANCE_WORK ? atomicAdd(cursor, 1ull) : thread;
    while (__any_sync(FULL_WARP, i < count)) {
      take(i);
      if (i < count) i = first + atomicAdd(cursor, 1ull);
    }
  } else if (BALANCE == BALANCE_RUNS) {
    const u64 run = (count + num_threads - 1) / num_threads;
    for (u64 k = 0; k < run; k++) take(thread * run + k);
  } else {
    u64 first = thread - lane_id();
    while (first < count) {
      take(first + lane_id());
      if (lane_id() == 0) first = num_threads + atomicAdd(cursor, 32ull);
      first = __shfl_sync(FULL_WARP, first, 0);
    }
  }
}

#endif
