// End a level: the next frontier becomes the frontier, and its vertices are seen, get their level,
// and are listed and counted.
//
// A lane owns a vertex, so its words need no atomics. Lane s of each warp sums up sources s and s
// + 32 and adds its sums to the control words once, with atomics. The bytes are estimates: all
// vertices that a warp finds at once count with the mean of their rows.
#include "many/many.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
many_commit(Many many, Rows out_rows, u32 level) {
  const u64 n = out_rows.num_vertices;
  u64 counts[2] = {0, 0}, bytes[2] = {0, 0};
  for (u64 first : warp_stride((n + 31) / 32)) {
    const u64 v = first * 32 + lane_id();
    const u64 fresh = v < n ? many.next_frontier[v] : 0;
    if (v < n) {
      many.frontier[v] = fresh;
      if (fresh) many.seen[v] |= fresh;
      if (fresh) many.next_frontier[v] = 0;
    }
    if (fresh && many.planes)
      for (u32 p = 0; p < MANY_PLANES; p++)
        if (level + 1 >> p & 1u) many.planes[p * n + v] |= fresh;
    u64 some = join_words(fresh);
    if (!some) continue;
    append(many.queue, &many.control[CONTROL_QUEUE_END], 0, fresh != 0, (u32)v);
    u64 mean = 0;
    if (fresh) {
      const Span span = row_span(out_rows, (u32)v);
      mean = 4 + span.end - span.begin;
    }
    for (int by = 16; by; by >>= 1) mean += __shfl_xor_sync(FULL_WARP, mean, by);
    mean /= __popc(__ballot_sync(FULL_WARP, fresh != 0));
    while (some) {
      const u32 s = 63u - (u32)__clzll((long long)some);
      some &= ~(1ull << s);
      const u64 count = (u64)__popc(__ballot_sync(FULL_WARP, fresh >> s & 1u));
      if (s == lane_id()) counts[0] += count, bytes[0] += count * mean;
      if (s == lane_id() + 32) counts[1] += count, bytes[1] += count * mean;
    }
  }
#pragma unroll
  for (u32 half = 0; half < 2; half++) {
    const u32 s = 32 * half + lane_id();
    if (!counts[half]) continue;
    atomicAdd(&many.control[CONTROL_WORDS + s], counts[half]);
    atomicAdd(&many.control[CONTROL_WORDS + 64 + s], bytes[half]);
  }
}
