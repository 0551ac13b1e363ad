// Steps over all vertices that claim nothing; a thread owns a vertex and all that it writes of it.
//
// RELAX_START clears what the last search left. RELAX_SOURCES begins at the queue's vertices.
// RELAX_MOVE is the second half of a level with flags (Harish and Narayanan, 2007): the flags of
// the next frontier become those of the present one. RELAX_BLOCK lets the vertices of a block of
// edges, which was copied to the device, take smaller depths from their neighbours; a depth that is
// still too large shrinks in a later pass. Axes: PHASE, PARENTS, BLOCK.
#include "methods/state.cuh"

namespace AXIS_SPACE {

enum Phase { RELAX_START, RELAX_SOURCES, RELAX_MOVE, RELAX_BLOCK };

__device__ __forceinline__ void start(const MethodState& t, u64 count) {
  for (u64 v : grid_stride(count)) {
    t.levels[v] = NO_LEVEL;
    if (t.parents) t.parents[v] = NO_VERTEX;
    if (t.flags) t.flags[v] = 0;
    if (t.next_flags) t.next_flags[v] = 0;
  }
  for (u64 w : grid_stride((count + 31) / 32)) {
    if (t.mask) t.mask[w] = 0;
    if (t.bits) t.bits[w] = 0;
  }
}

__device__ __forceinline__ void begin_at_sources(const MethodState& t, u64 count) {
  for (u64 i : grid_stride(count)) {
    const u32 vertex = t.queue[i];
    t.levels[vertex] = 0;
    if (t.parents) t.parents[vertex] = vertex;
    if (t.flags) t.flags[vertex] = 1;
  }
}

__device__ __forceinline__ void move_flags(const MethodState& t, u64 count) {
  for (u64 v : grid_stride(count)) {
    if (!t.next_flags[v]) continue;
    t.next_flags[v] = 0;
    t.flags[v] = 1;
    set_changed(t);
  }
}

// The edges of vertices first … first+count-1 lie in t.block.
__device__ __forceinline__ void relax_block(const MethodState& t, const MethodRows& rows, u64 first,
                                            u64 count) {
  Tally tally = {};
  const u64 base = rows.offsets[first];
  for (u64 i : grid_stride(count)) {
    const u32 vertex = (u32)(first + i);
    u32 depth = level_of(t, vertex), parent = NO_VERTEX;
    for (u64 k = rows.offsets[vertex]; k < rows.offsets[(u64)vertex + 1]; k++) {
      const u32 id = t.block[k - base];
      const u32 theirs = level_of(t, id);
      tally.examined++;
      // theirs + 1 < depth, where no depth yet is the largest number.
      if (theirs < NO_LEVEL - 1 && theirs + 1 < depth) {
        depth = theirs + 1;
        parent = id;
      }
    }
    if (parent == NO_VERTEX) continue;
    set_level<AXIS_PARENTS>(t, vertex, parent, depth);
    set_changed(t);
    tally.won++;
  }
  __syncwarp();
  add_tally(t, tally);
}

extern "C" __global__ void __launch_bounds__(AXIS_BLOCK)
AXIS_ENTRY(MethodState t, MethodRows rows, u64 first, u64 count) {
  if (AXIS_PHASE == RELAX_START) start(t, count);
  if (AXIS_PHASE == RELAX_SOURCES) begin_at_sources(t, count);
  if (AXIS_PHASE == RELAX_MOVE) move_flags(t, count);
  if (AXIS_PHASE == RELAX_BLOCK) relax_block(t, rows, first, count);
}

}  // namespace
using AXIS_SPACE::AXIS_ENTRY;
