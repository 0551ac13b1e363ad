// Decode independent spans with the functions under test and write every id down.
#include "expand.cuh"

template <u32 LANES>
__device__ __forceinline__ void decode_spans(u32* ids, u32* counts, const Rows& rows,
                                             const u64* begins, const u64* ends, u32 num_spans,
                                             u32 room) {
  const u32 groups = 32u / LANES, group = lane_id() / LANES;
  for (u64 first : warp_stride((num_spans + groups - 1) / groups)) {
    const u64 i = first * groups + group;
    Span span = {0, 0};
    if (i < num_spans) span = {begins[i], ends[i]};
    Cursor cursor = start_cursor<LANES>(span);
    while (__any_sync(FULL_WARP, !cursor.done())) {
      Decoded decoded;
      const bool active = !cursor.done();
      if (!decode_chunk<LANES>(decoded, cursor, rows, active)) atomicAdd(&counts[num_spans], 1u);
      for (u32 lane = 0; lane < LANES; lane++) {
        if (active && (lane_id() & (LANES - 1)) == lane)
          for (u32 k = 0; k < 4; k++)
            if (decoded.present >> k & 1u) ids[i * room + counts[i]++] = decoded.ids[k];
        __syncwarp();
      }
    }
  }
}

extern "C" __global__ void probe_decode_8(u32* ids, u32* counts, Rows rows, const u64* begins,
                                          const u64* ends, u32 num_spans, u32 room) {
  decode_spans<8>(ids, counts, rows, begins, ends, num_spans, room);
}

extern "C" __global__ void probe_decode_32(u32* ids, u32* counts, Rows rows, const u64* begins,
                                           const u64* ends, u32 num_spans, u32 room) {
  decode_spans<32>(ids, counts, rows, begins, ends, num_spans, room);
}
