// Contraction (Merrill et al., 2012, section 5): the edge queue becomes the vertex queue, or with
// EXPAND at once the next edge queue.
//
// A thread owns an edge. What passes the filters is claimed by plain writes, which two threads may
// do for one vertex: then it is in the queue twice.
// Axes: the three culls, PARENTS, EXPAND and with it GATHER, BLOCK.
#include "methods/claim.cuh"
#include "methods/gather.cuh"

namespace AXIS_SPACE {

extern "C" __global__ void __launch_bounds__(AXIS_BLOCK)
AXIS_ENTRY(MethodState t, MethodRows rows, u64 count, u32 level) {
  __shared__ GatherScratch<AXIS_BLOCK> shared;
  Tally tally = {};
#if AXIS_WARP_CULL || AXIS_HISTORY
  __shared__ CullScratch scratch;
  CullScratch* culls = &scratch;
  clear_history(scratch);
#else
  CullScratch* culls = nullptr;
#endif
  for (u64 tile : tiles(count)) {
    const u64 i = tile * AXIS_BLOCK + threadIdx.x;
    const u32 vertex = i < count ? t.edges[i] : 0;
    const u32 parent = AXIS_PARENTS && i < count ? t.edge_parents[i] : NO_VERTEX;
    const bool passed = pass_filters<AXIS_MASK, AXIS_WARP_CULL, AXIS_HISTORY>(
        t, culls, tally, i < count, vertex);
    const bool won = claim<CLAIM_PLAIN, AXIS_PARENTS>(t, tally, passed, vertex, parent, level);
    if constexpr (AXIS_EXPAND) {
      gather<AXIS_GATHER>(shared, rows, won ? vertex : NO_VERTEX,
                          [&](bool present, u32 id, u32 owner) {
        tally.examined += present;
        tally.edges_queued += present;
        append_block(shared.block, edge_queue(t), present, id, owner);
      });
    } else {
      tally.queued += won;
      append_block(shared.block, vertex_queue(t), won, vertex, parent);
    }
  }
  add_tally(t, tally);
}

}  // namespace
using AXIS_SPACE::AXIS_ENTRY;
