// Join every SAMPLE_STRIDE-th vertex outside the largest component with the first neighbour in its
// tail, to learn which component will be the largest (after Afforest, Sutton et al., 2018). A
// launch takes the vertices from `begin`, a multiple of SAMPLE_STRIDE, to `end`.
//
// A lane owns a vertex; only the first varint of its row is staged. link joins trees by an atomic.
#include "components/forest.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
components_firsts(Forest forest, Rows rows, u32 largest_vertex, u64 begin, u64 end) {
  __shared__ Scratch scratch[BLOCK_THREADS / 32];
  const u64 count = (end - begin + SAMPLE_STRIDE - 1) / SAMPLE_STRIDE;
  const u32 largest = find_root(forest, largest_vertex);
  Looked looked = {0, 0};
  for (u64 first : warp_stride((count + 31) / 32)) {
    const u64 v = begin + (first * 32 + lane_id()) * SAMPLE_STRIDE;
    Span span = {0, 0};
    if (v < end && label_of(forest, (u32)v) != largest) span = row_span(rows, (u32)v);
    if (span.end - span.begin > MAX_VARINT_BYTES) span.end = span.begin + MAX_VARINT_BYTES;
    StagedRow row = stage_short(scratch[warp_in_block()], rows, span);
    if (row.done()) continue;
    bool whole;
    const u32 neighbour = row.next(whole, rows.num_vertices);
    if (whole)
      link(forest, (u32)v, neighbour);
    else
      report_damage(forest);
    looked.edges++;
    looked.bytes += row.position;
  }
  add_looked(forest, looked);
}
