// Check what was found, vertex by vertex, after all arcs were looked at: see check.cuh.
//
// Sources are on level 0 and their own parents, and nothing else is on level 0. What was reached is
// confirmed, and what was not has no parent. A thread owns a vertex, or a source of the queue.
#include "results/check.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
check_found(Search search, Checked checked, u64 num_vertices, u64 num_sources) {
  u64 broken = 0;
  for (u64 v : grid_stride(num_vertices)) {
    const u32 level = found_level(search, v);
    const bool is_inner = level != 0 && level != NO_VERTEX;
    if (is_inner && !test_bit(checked.confirmed, (u32)v)) broken++;
    if (level == 0) broken++;   // which the sources take back
#if WITH_PARENTS
    if (level == 0 && search.parents[v] != v) broken++;
    if (level == NO_VERTEX && search.parents[v] != NO_VERTEX) broken++;
#endif
  }
  for (u64 i : grid_stride(num_sources)) {
    const bool is_first = found_level(search, search.queue[i]) == 0;
    broken = is_first ? broken - 1 : broken + num_vertices;
  }
  add_total(checked.broken, broken);
}
