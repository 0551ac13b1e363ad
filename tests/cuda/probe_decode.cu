// Decode independent spans with the functions under test and write every id down. The counts of ids
// are followed by flags that say which spans are damaged.
#include "bfs/expand.cuh"
#include "cuda/hubs.cuh"

template <u32 LANES>
__device__ __forceinline__ void decode_spans(u32* ids, u32* counts, const Rows& rows,
                                             const u64* begins, const u64* ends, u32 num_spans,
                                             u32 max_ids) {
  const u32 groups = 32u / LANES, group = lane_id() / LANES;
  for (u64 first : warp_stride((num_spans + groups - 1) / groups)) {
    const u64 i = first * groups + group;
    Span span = {0, 0};
    if (i < num_spans) span = {begins[i], ends[i]};
    Cursor cursor = start_cursor<LANES>(span);
    while (__any_sync(FULL_WARP, !cursor.done())) {
      Decoded decoded;
      const bool active = !cursor.done();
      if (!decode_chunk<LANES>(decoded, cursor, rows, active))
        atomicOr(&counts[num_spans + i], 1u);
      for (u32 lane = 0; lane < LANES; lane++) {
        if (active && (lane_id() & (LANES - 1)) == lane)
          for (u32 k = 0; k < 4; k++)
            if (decoded.present >> k & 1u) ids[i * max_ids + counts[i]++] = decoded.ids[k];
        __syncwarp();
      }
    }
  }
}

extern "C" __global__ void probe_decode_8(u32* ids, u32* counts, Rows rows, const u64* begins,
                                          const u64* ends, u32 num_spans, u32 max_ids) {
  decode_spans<8>(ids, counts, rows, begins, ends, num_spans, max_ids);
}

extern "C" __global__ void probe_decode_32(u32* ids, u32* counts, Rows rows, const u64* begins,
                                           const u64* ends, u32 num_spans, u32 max_ids) {
  decode_spans<32>(ids, counts, rows, begins, ends, num_spans, max_ids);
}

// The same for short rows, one a lane.
extern "C" __global__ void probe_decode_1(u32* ids, u32* counts, Rows rows, const u64* begins,
                                          const u64* ends, u32 num_spans, u32 max_ids) {
  __shared__ Scratch scratch[2];
  for (u64 first : warp_stride((num_spans + 31) / 32)) {
    const u64 i = first * 32 + lane_id();
    Span span = {0, 0};
    if (i < num_spans) span = {begins[i], ends[i]};
    StagedRow row = stage_short(scratch[warp_in_block()], rows, span);
    while (!row.done()) {
      bool whole;
      ids[i * max_ids + counts[i]++] = row.next(whole, rows.num_ids);
      if (!whole) atomicOr(&counts[num_spans + i], 1u);
    }
  }
}

// The first neighbour alone, as cuts look for it.
extern "C" __global__ void probe_decode_0(u32* ids, u32* counts, Rows rows, const u64* begins,
                                          const u64* ends, u32 num_spans, u32 max_ids) {
  for (u64 i : grid_stride(num_spans)) {
    ids[i * max_ids] = first_neighbour(rows, begins[i], ends[i]);
    counts[i] = 1;
  }
}
