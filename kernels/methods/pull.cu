// Bottom-up: unvisited vertices look for a neighbour in the frontier.
//
// A thread owns a vertex, or a warp does. Only its owner writes its level, so no claim needs an
// atomic; others read it meanwhile. With STOP_LATER, a row that was read to its end and held a
// vertex of this level gives its owner the next level at once (asynchronous, xbfs section 5.2).
// With STOP_NEVER, the least parent wins. Axes: ROWS, INPUT, BALANCE, GATHER, BITS, STOP, EMIT,
// PARENTS, SUM_EDGES, BLOCK.
#include "methods/emit.cuh"
#include "methods/gather.cuh"
#include "methods/input.cuh"
#include "methods/walk.cuh"

namespace AXIS_SPACE {

enum Stop { STOP_FIRST, STOP_LATER, STOP_NEVER };

struct Sought {
  u32 parent;   // a neighbour in the frontier
  u32 later;    // a neighbour that this level found
};

__device__ __forceinline__ bool in_frontier(const MethodState& t, u32 id, u32 level,
                                            Sought& sought) {
  if (AXIS_BITS) return test_bit(t.bits, id);
  const u32 theirs = level_of(t, id);
  if (AXIS_STOP == STOP_LATER && theirs == level && sought.later == NO_VERTEX) sought.later = id;
  return theirs == level - 1;
}

__device__ __forceinline__ Sought search_alone(const MethodState& t, const MethodRows& rows,
                                               Tally& tally, u32 vertex, u32 level) {
  Sought sought = {NO_VERTEX, NO_VERTEX};
  Walk<AXIS_ROWS> walk(rows, vertex);
  while (!walk.done()) {
    const u32 id = walk.take(t, rows);
    if (id == NO_VERTEX) break;
    tally.examined++;
    if (!in_frontier(t, id, level, sought)) continue;
    if (id < sought.parent) sought.parent = id;
    if (AXIS_STOP != STOP_NEVER) break;
  }
  return sought;
}

__device__ __forceinline__ Sought search_by_warp(const MethodState& t, const MethodRows& rows,
                                                 u32* stage, Tally& tally, u32 vertex, u32 level) {
  Sought sought = {NO_VERTEX, NO_VERTEX};
  walk_by_warp<AXIS_ROWS>(t, rows, stage, vertex, [&](bool present, u32 id) {
    tally.examined += present;
    const bool hit = present && in_frontier(t, id, level, sought);
    if (hit && id < sought.parent) sought.parent = id;
    return AXIS_STOP != STOP_NEVER && __any_sync(FULL_WARP, hit);
  }, [] {});
  for (u32 by = 16; by; by >>= 1) {
    const u32 other = __shfl_xor_sync(FULL_WARP, sought.parent, (int)by);
    const u32 later = __shfl_xor_sync(FULL_WARP, sought.later, (int)by);
    if (other < sought.parent) sought.parent = other;
    if (later < sought.later) sought.later = later;
  }
  return sought;
}

// The lane's vertex was searched for. All lanes of the warp call this together.
__device__ __forceinline__ void finish(const MethodState& t, Tally& tally, u64& next_edges,
                                       u32 vertex, const Sought& sought, u32 level) {
  const bool found = sought.parent != NO_VERTEX;
  const bool early = AXIS_STOP == STOP_LATER && !found && sought.later != NO_VERTEX;
  if (found) set_level<AXIS_PARENTS>(t, vertex, sought.parent, level);
  if (early) set_level<AXIS_PARENTS>(t, vertex, sought.later, level + 1);
  if (AXIS_SUM_EDGES && found) next_edges += out_degree(t, vertex);
  if (early) *(volatile u64*)&t.words[WORD_EARLY] = 1;
  tally.won += found || early;
  if (AXIS_EMIT == EMIT_CHANGED && found) set_changed(t);
  if (AXIS_EMIT == EMIT_ATOMIC) append_alone(vertex_queue(t), found, vertex);
  if (AXIS_EMIT == EMIT_WARP) append_warp(vertex_queue(t), found, vertex);
  if (AXIS_EMIT >= EMIT_ATOMIC) tally.queued += found;
}

extern "C" __global__ void __launch_bounds__(AXIS_BLOCK)
AXIS_ENTRY(MethodState t, MethodRows rows, u64 count, u32 level) {
  Tally tally = {};
  u64 next_edges = 0;
  if constexpr (AXIS_GATHER == GATHER_WARP) {
    __shared__ u32 stages[AXIS_BLOCK / 32][32];
    for (u64 i : warp_stride(count)) {
      const u32 vertex = input_vertex<AXIS_INPUT>(t, i, count, NO_LEVEL);
      __syncwarp();   // all lanes have looked at the level before one of them writes it
      if (vertex == NO_VERTEX) continue;
      Sought sought =
          search_by_warp(t, rows, stages[warp_in_block()], tally, vertex, level);
      if (lane_id() != 0) sought = {NO_VERTEX, NO_VERTEX};
      finish(t, tally, next_edges, vertex, sought, level);
    }
  } else {
    distribute<AXIS_BALANCE>(t, count, [&](u64 i) {
      const u32 vertex = input_vertex<AXIS_INPUT>(t, i, count, NO_LEVEL);
      const Sought sought = search_alone(t, rows, tally, vertex, level);
      finish(t, tally, next_edges, vertex, sought, level);
    });
  }
  if (AXIS_SUM_EDGES) add_total(&t.words[WORD_NEXT_EDGES], next_edges);
  __syncwarp();
  add_tally(t, tally);
}

}  // namespace
using AXIS_SPACE::AXIS_ENTRY;
