// Mark the blocks of the tails that a level needs from disk: those of the frontier's rows, if it is
// expanded, and those of all unvisited rows, if they are searched.
//
// A thread owns a vertex. Rows share words of the bitmap, so bits are set by atomics. Reads device
// memory only. Every level from disk begins here, so the byte that the next level will use is taken
// from the vertices that had it LEVEL_PERIOD levels ago: none of them is read again.
#include "cuda/on_level.cuh"
#include "cuda/rows.cuh"

__device__ __forceinline__ void mark(u32* blocks, u64 begin, u64 end) {
  if (begin == end) return;
  for (u64 block = begin / DISK_BLOCK_BYTES; block <= (end - 1) / DISK_BLOCK_BYTES; block++) {
    u32* word = &blocks[block >> 5];
    const u32 bit = 1u << (u32)(block & 31u);
    // Neighbouring rows share a block, and a read is cheaper than the atomic.
    if (!(*(volatile u32*)word & bit)) atomicOr(word, bit);
  }
}

// Mark the parts of a row that are not in device or host memory: before and after the readable
// part.
__device__ __forceinline__ void mark_row(u32* blocks, const Rows& rows, u32 vertex) {
  const Span row = row_span(rows, vertex), readable = readable_span(rows, vertex);
  mark(blocks, row.begin, readable.begin);
  mark(blocks, readable.end, row.end);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
mark_blocks(Search search, Rows out_rows, Rows in_rows, u32 level) {
  for (u64 vertex : grid_stride(out_rows.num_vertices)) {
    const u32 found = level_of(search, vertex);
    if (found == level_byte(level - 1)) mark_row(search.expanded_blocks, out_rows, (u32)vertex);
    if (found == level_byte(level + 1)) *(volatile u8*)&search.levels[vertex] = LONG_AGO;
    if (found == NOT_REACHED) mark_row(search.searched_blocks, in_rows, (u32)vertex);
  }
}
