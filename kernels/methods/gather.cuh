// How a block reads the rows of as many vertices as it has threads (Merrill et al., 2012, section
// 4.1): very long rows by the block, long ones by a warp, the rest by offsets in shared memory, or
// serially. Every round gives each thread at most one neighbour, and all threads of the block call
// visit(present, id, parent) together, so that it may use barriers. Plain CSR rows only.
#ifndef OOCBFS_METHODS_GATHER_CUH
#define OOCBFS_METHODS_GATHER_CUH
#include "methods/emit.cuh"

enum Gather {
  GATHER_SERIAL,
  GATHER_WARP,
  GATHER_SCAN,
  GATHER_SCAN_WARP,
  GATHER_SCAN_WARP_BLOCK
};

#define MOST_BLOCK_THREADS 1024u
#define NO_OWNER 0xffffffffu

template <u32 THREADS>
struct GatherScratch {
  BlockScratch block;
  u32 owner, vertex;
  u64 begin, end;
  u64 places[THREADS];   // where the neighbour of each thread lies
  u32 parents[THREADS];
};

struct Piece {
  u64 begin, end;
  u32 vertex;
  __device__ __forceinline__ u64 length() const { return end - begin; }
};

// Threads with a row of at least the block's size vie for a word; the whole block reads the
// winner's row.
template <u32 THREADS, class Visit>
__device__ __forceinline__ void gather_by_block(GatherScratch<THREADS>& scratch,
                                                const MethodRows& rows, Piece& mine, Visit visit) {
  while (true) {
    if (threadIdx.x == 0) scratch.owner = NO_OWNER;
    __syncthreads();
    if (mine.length() >= THREADS) *(volatile u32*)&scratch.owner = threadIdx.x;
    __syncthreads();
    const u32 owner = scratch.owner;
    if (owner == NO_OWNER) return;
    if (owner == threadIdx.x) {
      scratch.begin = mine.begin;
      scratch.end = mine.end;
      scratch.vertex = mine.vertex;
      mine.begin = mine.end;
    }
    __syncthreads();
    const Piece row = {scratch.begin, scratch.end, scratch.vertex};
    for (u64 first = row.begin; first < row.end; first += THREADS) {
      const bool present = first + threadIdx.x < row.end;
      visit(present, present ? __ldg(&rows.columns[first + threadIdx.x]) : 0, row.vertex);
    }
  }
}

// The lanes of a warp read the rows of at least `shortest` neighbours of one lane after the other.
// Warps that are done wait for the others, because rounds are the block's.
template <class Visit>
__device__ __forceinline__ void gather_by_warp(const MethodRows& rows, Piece& mine, u64 shortest,
                                               Visit visit) {
  Piece row = {0, 0, NO_VERTEX};
  while (true) {
    const u32 waiting = __ballot_sync(FULL_WARP, mine.length() >= shortest);
    if (row.begin >= row.end && waiting) {
      const int owner = __ffs((int)waiting) - 1;
      row = {__shfl_sync(FULL_WARP, mine.begin, owner), __shfl_sync(FULL_WARP, mine.end, owner),
             __shfl_sync(FULL_WARP, mine.vertex, owner)};
      if (lane_id() == (u32)owner) mine.begin = mine.end;
    }
    if (!__syncthreads_or(row.begin < row.end)) return;
    const bool present = row.begin + lane_id() < row.end;
    visit(present, present ? __ldg(&rows.columns[row.begin + lane_id()]) : 0, row.vertex);
    row.begin = row.begin + 32 < row.end ? row.begin + 32 : row.end;
  }
}

// A scan gives every neighbour a place; threads write where theirs lie, and then each takes one.
template <u32 THREADS, class Visit>
__device__ __forceinline__ void gather_by_scan(GatherScratch<THREADS>& scratch,
                                               const MethodRows& rows, Piece& mine, Visit visit) {
  u64 total;
  u64 place = scan_block(scratch.block, mine.length(), total);
  for (u64 done = 0; done < total; done += THREADS) {
    for (; mine.begin < mine.end && place < done + THREADS; mine.begin++, place++) {
      scratch.places[place - done] = mine.begin;
      scratch.parents[place - done] = mine.vertex;
    }
    __syncthreads();
    const bool present = threadIdx.x < total - done;
    const u64 where = present ? scratch.places[threadIdx.x] : 0;
    const u32 parent = present ? scratch.parents[threadIdx.x] : NO_VERTEX;
    __syncthreads();   // before the next places are written
    visit(present, present ? __ldg(&rows.columns[where]) : 0, parent);
  }
}

template <class Visit>
__device__ __forceinline__ void gather_serially(const MethodRows& rows, Piece& mine, Visit visit) {
  while (__syncthreads_or(mine.begin < mine.end)) {
    const bool present = mine.begin < mine.end;
    visit(present, present ? __ldg(&rows.columns[mine.begin]) : 0, mine.vertex);
    mine.begin += present;
  }
}

// Read the row of each thread's vertex; NO_VERTEX has none.
template <Gather GATHER, u32 THREADS, class Visit>
__device__ __forceinline__ void gather(GatherScratch<THREADS>& scratch, const MethodRows& rows,
                                       u32 vertex, Visit visit) {
  Piece mine = {0, 0, vertex};
  if (vertex != NO_VERTEX) {
    mine.begin = rows.offsets[vertex];
    mine.end = rows.offsets[(u64)vertex + 1];
  }
  if (GATHER == GATHER_SCAN_WARP_BLOCK) gather_by_block(scratch, rows, mine, visit);
  if (GATHER == GATHER_WARP) gather_by_warp(rows, mine, 1, visit);
  if (GATHER >= GATHER_SCAN_WARP) gather_by_warp(rows, mine, 32, visit);
  if (GATHER >= GATHER_SCAN) gather_by_scan(scratch, rows, mine, visit);
  if (GATHER == GATHER_SERIAL) gather_serially(rows, mine, visit);
}

#endif
