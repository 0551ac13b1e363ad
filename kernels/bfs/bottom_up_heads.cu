// Bottom-up (Beamer et al., 2012), first half: each unvisited vertex tests whether its head is
// visited.
//
// An unvisited vertex has no neighbour on a level before the frontier. So "visited when the level
// began" means "in the frontier", and no bitmap of the frontier is needed. A warp owns up to 32
// words of the bitmap at a time, lane i word i; no other warp writes them in `claimed`, so those
// writes need no atomics. The lanes then test the 32 vertices of one word after the other. Hits go
// to the queue and misses to the pending list at once, with one atomic each. Reads device memory
// only.
//
// PENDING_SLOW_BYTES and PENDING_FAST_BYTES grow by the bytes that bottom_up_tails is expected to
// read, by the memory in which a row begins. A sector that a short row shares with the pending row
// before it is counted once. Half of the rows that go on in a second sector are expected to read
// it. A long row is read until its first hit; the larger the frontier's share of all rows, the
// sooner that comes. There is one sum for each range of the vertices; ranges end at cuts, which lie
// between words of the bitmap.
//
// Does nothing if expanding the frontier costs less than `skip_cost`: the host then expands it
// top-down. This kernel does not write FOUND_SECTORS, so all warps decide alike.
#include "bfs/expand.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
bottom_up_heads(Search search, Rows in_rows, Rows out_rows, u32 level, u32 each, u64 pending_base,
                SectorTotals base, u64 slow_cost, u64 fast_cost, u64 skip_cost, u64 tail_bytes) {
  u64* control = search.control;
  const u64 slow = control[CONTROL_FOUND_SECTORS] - base.slow;
  const u64 fast = control[CONTROL_FOUND_SECTORS + 1] - base.fast;
  if (slow * slow_cost + fast * fast_cost < skip_cost) return;
  const u64 expected_search = 32 + tail_bytes / (32 * (slow + fast) + 1);
  const u64 n = in_rows.num_vertices, num_words = (n + 31) / 32;
  u64 pending_slow = 0, pending_fast = 0;
  u32 num_found = 0, num_tested = 0;
  RowSectors found_sectors = {};
  u32 range = 0;
  for (u64 first : warp_stride((num_words + each - 1) / each)) {
    const u64 mine = first * each + lane_id();
    const bool owns = lane_id() < each && mine < num_words;
    u32 visited = owns ? search.visited[mine] : FULL_WARP;
    u32 open = __ballot_sync(FULL_WARP, visited != FULL_WARP);
    for (; open; open &= open - 1) {
      const u32 owner = (u32)__ffs((int)open) - 1;
      const u32 word = __shfl_sync(FULL_WARP, visited, (int)owner);
      const u32 word_begin = (u32)((first * each + owner) * 32), vertex = word_begin + lane_id();
      if (range < NUM_RANGES - 1 && word_begin >= search.cuts[range]) {
        add_total(&control[CONTROL_PENDING_SLOW_BYTES + range], pending_slow);
        add_total(&control[CONTROL_PENDING_FAST_BYTES + range], pending_fast);
        pending_slow = pending_fast = 0;
        while (range < NUM_RANGES - 1 && word_begin >= search.cuts[range]) range++;
      }
      bool found = false, missed = false, is_short = false, in_fast = false;
      u64 first_sector = 0, last_sector = 0, bytes = 0;
      if (!(word >> lane_id() & 1u)) {
        const u32 head = in_rows.heads[vertex];
        if (head < in_rows.num_ids) {
          found = is_reached(search, head);
          num_tested++;
          if (found) {
            reach(search, vertex, head, level);
            found_sectors.add(out_rows, vertex);
          } else {
            const Span span = row_span(in_rows, vertex);
            missed = span.begin < span.end;
            bytes = 32 * count_sectors(span);
            in_fast = is_fast(in_rows, span.begin);
            is_short = missed && span.end - span.begin <= SHORT_BYTES;
            if (bytes > expected_search) bytes = expected_search;
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
        bytes = 32 + 16 * (last_sector - first_sector);
        if (before) bytes -= first_sector == left_first ? 32 : first_sector == left_last ? 16 : 0;
      }
      pending_slow += in_fast ? 0 : bytes;
      pending_fast += in_fast ? bytes : 0;
      append(search.queue, &control[CONTROL_QUEUE_END], 0, found, vertex);
      append(search.pending, &control[CONTROL_PENDING], pending_base, missed, vertex);
      const u32 hits = __ballot_sync(FULL_WARP, found);
      if (lane_id() == owner) visited |= hits;
      num_found += found;
    }
    if (owns) search.claimed[mine] = visited;
  }
  add_total(&control[CONTROL_HEADS_TESTED], num_tested);
  add_total(&control[CONTROL_HEADS_FOUND], num_found);
  add_sectors(&control[CONTROL_HEADS_FOUND_SECTORS], found_sectors);
  add_total(&control[CONTROL_PENDING_SLOW_BYTES + range], pending_slow);
  add_total(&control[CONTROL_PENDING_FAST_BYTES + range], pending_fast);
  if (blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(&control[CONTROL_HEADS_RAN], 1ull);
}
