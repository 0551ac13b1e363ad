// Who takes a neighbour: filters that drop most of those that are visited, and the claim itself.
//
// Filters and plain claims are best effort (Merrill et al., 2012, section 4.2): they may let a
// vertex pass twice, never drop one that nobody takes. A barrier of the warp lies between each look
// and the write after it, because lanes of a real warp look together.
#ifndef OOCBFS_METHODS_CLAIM_CUH
#define OOCBFS_METHODS_CLAIM_CUH
#include "methods/state.cuh"

enum Claim {
  CLAIM_PLAIN,     // look at the level, then write it
  CLAIM_CAS,       // compare and swap for every neighbour
  CLAIM_TEST_CAS,  // look at the level before
  CLAIM_MIN,       // look at the level, then the smaller one stays
  CLAIM_SETTLED,   // plain writes came before: the vertex belongs to the parent that is left
  CLAIM_ALL        // take all: contraction comes later
};

#define HASH_BITS 7u
#define HASH_WORDS (1u << HASH_BITS)
#define HISTORY_BITS 10u
#define HISTORY_WORDS (1u << HISTORY_BITS)

// Vertices that are a power of two apart, as in a grid, must not meet in one slot.
__device__ __forceinline__ u32 slot_of(u32 vertex, u32 bits) {
  return vertex * 0x9E3779B1u >> (32u - bits);
}

struct CullScratch {
  u32 hash[32][HASH_WORDS];
  u32 history[HISTORY_WORDS];
};

// Shared memory starts as garbage, which could name a vertex that nobody took.
__device__ __forceinline__ void clear_history(CullScratch& scratch) {
  for (u32 i = threadIdx.x; i < HISTORY_WORDS; i += blockDim.x) scratch.history[i] = NO_VERTEX;
  __syncthreads();
}

// Of the lanes with one vertex, one passes: each writes its vertex into the slot of a hash, those
// that read it back write their lane, and all but one of those that read another lane drop out. A
// vertex whose slot was taken by another vertex passes. All lanes of the warp call this together.
__device__ __forceinline__ bool pass_warp(CullScratch& scratch, bool present, u32 vertex) {
  volatile u32* slot = &scratch.hash[warp_in_block()][slot_of(vertex, HASH_BITS)];
  if (present) *slot = vertex;
  __syncwarp();
  const bool same = present && *slot == vertex;
  __syncwarp();
  if (same) *slot = lane_id();
  __syncwarp();
  const bool lost = same && *slot != lane_id();
  __syncwarp();   // the next neighbours use the same slots
  return present && !lost;
}

// A vertex that a thread of the block went on with lately needs no other thread: that one looks at
// its level. All lanes of the warp call this together.
__device__ __forceinline__ bool pass_history(CullScratch& scratch, bool present, u32 vertex) {
  volatile u32* slot = &scratch.history[slot_of(vertex, HISTORY_BITS)];
  const bool known = present && *slot == vertex;
  __syncwarp();
  if (present && !known) *slot = vertex;
  return present && !known;
}

// Merrill's filters, each only if it is chosen, and the level. Culls come first: they look at
// shared memory alone. A bit of the mask says that a thread went on with the vertex; one that is
// lost, because the word is written without an atomic, costs a look at the level. All lanes of the
// warp call this together.
template <bool MASK, bool WARP, bool HISTORY>
__device__ __forceinline__ bool pass_filters(const MethodState& t, CullScratch* scratch,
                                             Tally& tally, bool present, u32 vertex) {
  const bool given = present;
  if (WARP) present = pass_warp(*scratch, present, vertex);
  if (HISTORY) present = pass_history(*scratch, present, vertex);
  tally.lost += given && !present;
  volatile u32* word = MASK ? &t.mask[vertex >> 5] : nullptr;
  const u32 bit = 1u << (vertex & 31u);
  u32 seen = 0;
  if (MASK && present) seen = *word;
  present = present && !(seen & bit) && level_of(t, vertex) == NO_LEVEL;
  __syncwarp();
  if (MASK && present) *word = seen | bit;
  return present;
}

// Try to take a neighbour that passed. Says whether this thread has it.
template <Claim CLAIM, bool PARENTS>
__device__ __forceinline__ bool claim(const MethodState& t, Tally& tally, bool present, u32 vertex,
                                      u32 parent, u32 level) {
  if (CLAIM == CLAIM_ALL) return present;
  if (CLAIM == CLAIM_SETTLED)
    return present && level_of(t, vertex) == level && t.parents[vertex] == parent;
  bool won = present;
  if (CLAIM == CLAIM_PLAIN) {
    if (won) set_level<PARENTS>(t, vertex, parent, level);
  } else if (won) {
    u32* word = &t.levels[vertex];
    if (CLAIM == CLAIM_CAS || level_of(t, vertex) > level) {
      won = CLAIM == CLAIM_MIN ? atomicMin(word, level) > level
                               : atomicCAS(word, NO_LEVEL, level) == NO_LEVEL;
      tally.lost += !won;
      if (won && PARENTS) *(volatile u32*)&t.parents[vertex] = parent;
    } else {
      won = false;
    }
  }
  tally.won += won;
  return won;
}

#endif
