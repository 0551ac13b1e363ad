// Bottom-up (Beamer et al., 2012), first half: each unvisited vertex tests whether its head is
// visited.
//
// An unvisited vertex has no neighbour on a level before the frontier. So "visited when the level
// began" means "in the frontier", and no bitmap of the frontier is needed. A warp owns 32 words of
// the bitmap at a time, lane i word i; no other warp writes them in `claimed`, so those writes
// need no atomics. The lanes then test the 32 vertices of one word after the other. Hits go to the
// queue and misses to the pending list at once, with one atomic each. Reads device memory only.
//
// PENDING_BYTES grows by the bytes that bottom_up_tails is expected to move. A sector that a short
// row shares with the pending row before it is counted once. Half of the rows that go on in a
// second sector are expected to read it. A long row is read until its first hit; the larger the
// frontier's share of all rows, the sooner that comes. There is one sum for each part of the
// vertices; parts end at cuts, which lie between words of the bitmap.
//
// Does nothing if expanding the frontier moves fewer than `skip_bytes` over the bus: the host then
// expands it top-down. This kernel does not write FOUND_BYTES, so all warps decide alike.
#include "bfs/expand.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
bottom_up_heads(Search search, Rows in_rows, Rows out_rows, u32 level, u64 pending_base,
                u64 bytes_base, u64 skip_bytes, u64 tail_bytes) {
  u64* control = search.control;
  const u64 frontier_bytes = control[CONTROL_FOUND_BYTES] - bytes_base;
  if (frontier_bytes < skip_bytes) return;
  const u64 expected_search = 32 + tail_bytes / (frontier_bytes + 1);
  const u64 n = in_rows.num_vertices, num_words = (n + 31) / 32;
  u64 pending_bytes = 0;
  u32 num_found = 0, num_tested = 0;
  Cost found_cost = {};
  u32 part = 0;
  for (u64 first : warp_stride((num_words + 31) / 32)) {
    const u64 mine = first * 32 + lane_id();
    u32 visited = mine < num_words ? search.visited[mine] : FULL_WARP;
    u32 open = __ballot_sync(FULL_WARP, visited != FULL_WARP);
    for (; open; open &= open - 1) {
      const u32 owner = (u32)__ffs((int)open) - 1;
      const u32 word = __shfl_sync(FULL_WARP, visited, (int)owner);
      const u32 word_begin = (u32)((first * 32 + owner) * 32), vertex = word_begin + lane_id();
      if (part < PARTS - 1 && word_begin >= search.cuts[part]) {
        add_total(&control[CONTROL_PENDING_BYTES + part], pending_bytes);
        pending_bytes = 0;
        while (part < PARTS - 1 && word_begin >= search.cuts[part]) part++;
      }
      bool found = false, missed = false, is_short = false;
      u64 first_sector = 0, last_sector = 0, cost = 0;
      if (!(word >> lane_id() & 1u)) {
        const u32 head = in_rows.heads[vertex];
        if (head < in_rows.num_ids) {
          found = is_reached(search, head);
          num_tested++;
          if (found) {
            reach(search, vertex, head, level);
            found_cost.add(out_rows, vertex);
          } else {
            const Span span = row_span(in_rows, vertex);
            missed = span.begin < span.end;
            cost = slow_bytes(in_rows, span);
            is_short = cost && span.end - span.begin <= SHORT_BYTES;
            if (cost > expected_search) cost = expected_search;
            first_sector = span.begin >> 5;
            last_sector = span.end - 1 >> 5;
          }
        } else if (head != NO_VERTEX) {
          report_damage(search);
        }
      }
      const u32 before = __ballot_sync(FULL_WARP, is_short) & lanes_below();
      const int left = before ? 31 - __clz((int)before) : 0;
      const u64 left_first = __shfl_sync(FULL_WARP, first_sector, left);
      const u64 left_last = __shfl_sync(FULL_WARP, last_sector, left);
      if (is_short) {
        cost = 32 + 16 * (last_sector - first_sector);
        if (before) cost -= first_sector == left_first ? 32 : first_sector == left_last ? 16 : 0;
      }
      pending_bytes += cost;
      append(search.queue, &control[CONTROL_QUEUE_END], 0, found, vertex);
      append(search.pending, &control[CONTROL_PENDING], pending_base, missed, vertex);
      const u32 hits = __ballot_sync(FULL_WARP, found);
      if (lane_id() == owner) visited |= hits;
      num_found += found;
    }
    if (mine < num_words) search.claimed[mine] = visited;
  }
  add_total(&control[CONTROL_HEADS_TESTED], num_tested);
  add_total(&control[CONTROL_HEADS_FOUND], num_found);
  add_cost(&control[CONTROL_HEADS_FOUND_BYTES], found_cost);
  add_total(&control[CONTROL_PENDING_BYTES + part], pending_bytes);
  if (blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(&control[CONTROL_HEADS_RAN], 1ull);
}
