// From the array of levels to lists of vertices, or to bitmaps.
//
// COMPACT_QUEUE appends the vertices of a level to the queue; the order depends on the schedule.
// COMPACT_COUNT and, after a scan, COMPACT_WRITE make an ascending list: a thread owns a segment of
// SCAN_SEGMENT neighbouring vertices, or of the list before. COMPACT_BITS writes the bitmaps of
// what is visited and of a level; a warp owns a word of each. Axes: PHASE, INPUT, EMIT, SUM_EDGES,
// BLOCK.
#include "methods/emit.cuh"
#include "methods/input.cuh"

namespace AXIS_SPACE {

enum Phase { COMPACT_QUEUE, COMPACT_COUNT, COMPACT_WRITE, COMPACT_BITS };

__device__ __forceinline__ void fill_queue(const MethodState& t, u64 count, u32 wanted) {
  u64 next_edges = 0;
  Tally tally = {};
  for (u64 turn : warp_stride((count + 31) / 32)) {
    const u32 vertex = input_vertex<AXIS_INPUT>(t, turn * 32 + lane_id(), count, wanted);
    const bool chosen = vertex != NO_VERTEX;
    if (AXIS_SUM_EDGES && chosen) next_edges += out_degree(t, vertex);
    tally.queued += chosen;
    if (AXIS_EMIT == EMIT_WARP)
      append_warp(vertex_queue(t), chosen, vertex);
    else
      append_alone(vertex_queue(t), chosen, vertex);
  }
  if (AXIS_SUM_EDGES) add_total(&t.words[WORD_NEXT_EDGES], next_edges);
  __syncwarp();
  add_tally(t, tally);
}

__device__ __forceinline__ void fill_list(const MethodState& t, u64 count, u32 wanted) {
  for (u64 segment : grid_stride((count + SCAN_SEGMENT - 1) / SCAN_SEGMENT)) {
    u64 position = 0;
    if (AXIS_PHASE == COMPACT_WRITE)
      position = (u64)t.sums[segment / SCAN_TILE] + t.counts[segment];
    u32 found = 0;
    for (u64 i = segment * SCAN_SEGMENT; i < (segment + 1) * SCAN_SEGMENT; i++) {
      const u32 vertex = input_vertex<AXIS_INPUT>(t, i, count, wanted);
      if (vertex == NO_VERTEX) continue;
      if (AXIS_PHASE == COMPACT_WRITE) t.next_queue[position + found] = vertex;
      found++;
    }
    if (AXIS_PHASE == COMPACT_COUNT) t.counts[segment] = found;
  }
}

__device__ __forceinline__ void fill_bits(const MethodState& t, u64 count, u32 wanted) {
  for (u64 word : warp_stride((count + 31) / 32)) {
    const u64 vertex = word * 32 + lane_id();
    const u32 level = vertex < count ? t.levels[vertex] : NO_LEVEL;
    const u32 visited = __ballot_sync(FULL_WARP, level != NO_LEVEL);
    const u32 on_level = __ballot_sync(FULL_WARP, level == wanted);
    if (lane_id() == 0) t.mask[word] = visited;
    if (lane_id() == 0) t.bits[word] = on_level;
  }
}

extern "C" __global__ void __launch_bounds__(AXIS_BLOCK)
AXIS_ENTRY(MethodState t, u64 count, u32 wanted) {
  if (AXIS_PHASE == COMPACT_QUEUE)
    fill_queue(t, count, wanted);
  else if (AXIS_PHASE == COMPACT_BITS)
    fill_bits(t, count, wanted);
  else
    fill_list(t, count, wanted);
}

}  // namespace
using AXIS_SPACE::AXIS_ENTRY;
