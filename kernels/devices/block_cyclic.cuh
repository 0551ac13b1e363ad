// The block-cyclic cut of the vertices for several devices: words of 64 vertices, in turn.
//
// Word w of a bitmap of all vertices belongs to device w % devices, and is its word w / devices. A
// device has the rows of its own vertices, numbered without gaps, and bitmaps, queue and levels of
// these rows. Heads and tails hold ids of all vertices. Two bitmaps are of all vertices: `reached`,
// in which bottom-up steps look neighbours up, and `marked`, in which top-down steps mark them.
// What devices send each other is a list of `devices` pieces of `stride` words: the words of each.
#ifndef OOCBFS_BLOCK_CYCLIC_CUH
#define OOCBFS_BLOCK_CYCLIC_CUH
#include "cuda/common.cuh"

struct BlockCyclic {
  u64* reached;
  u64* marked;
  u64* sent;       // pieces for the others
  u64* received;   // pieces of all, the own one included
  u64 num_words;   // of a bitmap of all vertices
  u64 stride;
  u32 devices;
  u32 device;      // the own number
};
static_assert(sizeof(BlockCyclic) == BLOCK_CYCLIC_STRUCT_BYTES, "differs from its numpy dtype");

#endif
