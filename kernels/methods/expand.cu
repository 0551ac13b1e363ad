// Top-down: vertices of the frontier look at their neighbours, and claim those that are unvisited,
// or write all of them to the edge queue.
//
// A thread owns a vertex (serial), a warp does, or a block reads the rows of its threads together.
// What is claimed belongs to the thread that claimed it, twice where a plain claim let two pass.
// Axes: ROWS, INPUT, BALANCE, GATHER, CLAIM, the three culls, EMIT, PARENTS, SUM_EDGES, BLOCK.
#include "methods/claim.cuh"
#include "methods/gather.cuh"
#include "methods/input.cuh"
#include "methods/walk.cuh"

namespace AXIS_SPACE {

constexpr bool BY_BLOCK = AXIS_EMIT == EMIT_BLOCK || AXIS_GATHER >= GATHER_SCAN;
// Lanes of a warp take each step together where a claim or an append is the warp's.
constexpr bool TOGETHER = AXIS_CLAIM == CLAIM_PLAIN || AXIS_EMIT == EMIT_WARP || AXIS_DONATE;

struct Own {
  Tally tally;
  u64 next_edges;    // degrees of what was claimed
  u32 found;         // by the present item
  u64 item;
  Finds finds;       // that wait to be appended
};

__device__ __forceinline__ void look(const MethodState& t, CullScratch* culls, BlockScratch* block,
                                     Own& own, bool present, u32 id, u32 parent, u32 level) {
  own.tally.examined += present;
  if (AXIS_CLAIM == CLAIM_PLAIN)
    present =
        pass_filters<AXIS_MASK, AXIS_WARP_CULL, AXIS_HISTORY>(t, culls, own.tally, present, id);
  const bool won = claim<AXIS_CLAIM, AXIS_PARENTS>(t, own.tally, present, id, parent, level);
  if (AXIS_SUM_EDGES && won) own.next_edges += out_degree(t, id);
  const Queue queue = AXIS_CLAIM == CLAIM_ALL ? edge_queue(t) : vertex_queue(t);
  if (AXIS_EMIT == EMIT_CHANGED && won) set_changed(t);
  if (AXIS_EMIT == EMIT_FLAGS && won) *(volatile u32*)&t.next_flags[id] = 1;
  if (AXIS_EMIT == EMIT_ATOMIC) append_alone(queue, won, id);
  if (AXIS_EMIT == EMIT_WARP && AXIS_GATHER != GATHER_WARP) append_warp(queue, won, id);
  if (AXIS_EMIT == EMIT_WARP && AXIS_GATHER == GATHER_WARP && won)
    own.finds.items[own.finds.count++] = id;
  if (AXIS_EMIT == EMIT_BLOCK) append_block(*block, queue, won, id, parent);
  if (AXIS_EMIT == EMIT_ASSIGN && won)
    queue.write((u64)t.sums[own.item / SCAN_TILE] + t.counts[own.item] + own.found, id, parent);
  own.found += won;
  if (AXIS_EMIT >= EMIT_ATOMIC && AXIS_EMIT != EMIT_COUNT) {
    if (AXIS_CLAIM == CLAIM_ALL)
      own.tally.edges_queued += won;
    else
      own.tally.queued += won;
  }
}

#if AXIS_DONATE
// One lane's row is all that is left of the warp's: every lane takes a part of it.
template <class Visit>
__device__ __forceinline__ void donate(const MethodRows& rows, Walk<ROWS_CSR>& walk, u32 vertex,
                                       Visit visit) {
  const u32 busy = __ballot_sync(FULL_WARP, !walk.done());
  if (__popc(busy) != 1) return;
  const int owner = __ffs((int)busy) - 1;
  const u64 begin = __shfl_sync(FULL_WARP, walk.next, owner);
  const u64 end = __shfl_sync(FULL_WARP, walk.end, owner);
  const u32 parent = __shfl_sync(FULL_WARP, vertex, owner);
  for (u64 first = begin; first < end; first += 32) {
    const bool present = first + lane_id() < end;
    visit(present, present ? __ldg(&rows.columns[first + lane_id()]) : 0, parent);
  }
  walk.next = walk.end;
}
#endif

template <class Visit>
__device__ __forceinline__ void walk_alone(const MethodState& t, const MethodRows& rows, u32 vertex,
                                           Visit visit) {
  Walk<AXIS_ROWS> walk(rows, vertex);
  while (TOGETHER ? __any_sync(FULL_WARP, !walk.done()) : !walk.done()) {
#if AXIS_DONATE
    donate(rows, walk, vertex, visit);
#endif
    bool present = !walk.done();
    u32 id = 0;
    if (present) id = walk.take(t, rows);
    present = present && id != NO_VERTEX;
    visit(present, present ? id : 0, vertex);
  }
}

extern "C" __global__ void __launch_bounds__(AXIS_BLOCK)
AXIS_ENTRY(MethodState t, MethodRows rows, u64 count, u32 level) {
  Own own = {};
#if AXIS_WARP_CULL || AXIS_HISTORY
  __shared__ CullScratch scratch;
  CullScratch* culls = &scratch;
  clear_history(scratch);
#else
  CullScratch* culls = nullptr;
#endif
  if constexpr (BY_BLOCK) {
    __shared__ GatherScratch<AXIS_BLOCK> shared;
    for (u64 tile : tiles(count)) {
      const u32 vertex =
          input_vertex<AXIS_INPUT>(t, tile * AXIS_BLOCK + threadIdx.x, count, level - 1);
      gather<AXIS_GATHER>(shared, rows, vertex, [&](bool present, u32 id, u32 parent) {
        look(t, culls, &shared.block, own, present, id, parent, level);
      });
    }
  } else if constexpr (AXIS_GATHER == GATHER_WARP) {
    __shared__ u32 stages[AXIS_BLOCK / 32][32];
    for (u64 i : warp_stride(count)) {
      const u32 vertex = input_vertex<AXIS_INPUT>(t, i, count, level - 1);
      if (vertex == NO_VERTEX) continue;
      walk_by_warp<AXIS_ROWS>(
          t, rows, stages[warp_in_block()], vertex,
          [&](bool present, u32 id) {
            look(t, culls, nullptr, own, present, id, vertex, level);
            return false;
          },
          [&] {
            if (AXIS_EMIT == EMIT_WARP) append_finds(vertex_queue(t), own.finds);
          });
    }
  } else {
    distribute<AXIS_BALANCE>(t, count, [&](u64 i) {
      const u32 vertex = input_vertex<AXIS_INPUT>(t, i, count, level - 1);
      own.found = 0;
      own.item = i;
      walk_alone(t, rows, vertex, [&](bool present, u32 id, u32 parent) {
        look(t, culls, nullptr, own, present, id, parent, level);
      });
      if (AXIS_EMIT == EMIT_COUNT && i < count) t.counts[i] = own.found;
    });
  }
  if (AXIS_SUM_EDGES) add_total(&t.words[WORD_NEXT_EDGES], own.next_edges);
  __syncwarp();
  add_tally(t, own.tally);
}

}  // namespace
using AXIS_SPACE::AXIS_ENTRY;
