// How the neighbours of a vertex are read from host memory: by one lane, or by a warp.
#ifndef OOCBFS_METHODS_WALK_CUH
#define OOCBFS_METHODS_WALK_CUH
#include "methods/state.cuh"

enum RowKind { ROWS_CSR, ROWS_OCG };

// One lane goes through a row, a neighbour at a time.
template <RowKind KIND>
struct Walk;

template <>
struct Walk<ROWS_CSR> {
  u64 next, end;

  __device__ __forceinline__ Walk(const MethodRows& rows, u32 vertex) : next(0), end(0) {
    if (vertex == NO_VERTEX) return;
    next = rows.offsets[vertex];
    end = rows.offsets[(u64)vertex + 1];
  }
  __device__ __forceinline__ bool done() const { return next >= end; }
  __device__ __forceinline__ u32 take(const MethodState&, const MethodRows& rows) {
    return __ldg(&rows.columns[next++]);
  }
};

// The head, then the varints of the tail out of words of four bytes. A row that is damaged ends
// where that shows.
template <>
struct Walk<ROWS_OCG> {
  u32 head, word, sum;
  u64 next, end, segment_end, loaded;

  __device__ __forceinline__ Walk(const MethodRows& rows, u32 vertex)
      : head(NO_VERTEX), word(0), sum(0), next(0), end(0), segment_end(0), loaded(~0ull) {
    if (vertex == NO_VERTEX) return;
    head = __ldg(&rows.packed.heads[vertex]);
    const Span row = row_span(rows.packed, vertex);
    next = row.begin;
    end = row.end;
    segment_end = next;
  }
  __device__ __forceinline__ bool done() const { return head == NO_VERTEX && next >= end; }

  __device__ __forceinline__ u32 take(const MethodState& t, const MethodRows& rows) {
    u32 id = head;
    head = NO_VERTEX;
    if (id == NO_VERTEX) id = take_varint(rows);
    if (id < rows.packed.num_vertices) return id;
    report_damaged_row(t);
    next = end;
    return NO_VERTEX;
  }
  __device__ __forceinline__ u32 take_varint(const MethodRows& rows) {
    if (next == segment_end) {
      segment_end = end - next > SEGMENT_BYTES ? next + SEGMENT_BYTES : end;
      sum = 0;
    }
    u64 value = 0;
    u32 shift = 0, byte = 0x80u;
    while (byte & 0x80u && next < segment_end) {
      if (loaded != next >> 2) {
        loaded = next >> 2;
        word = load_word(rows.packed, next & ~3ull);
      }
      byte = word >> (8 * (u32)(next & 3u)) & 0xffu;
      if (shift < 63) value |= (u64)(byte & 0x7fu) << shift;
      shift += 7;
      next++;
    }
    const bool whole = !(byte & 0x80u) && shift <= 7 * MAX_VARINT_BYTES;
    if (!whole || sum + value >= rows.packed.num_vertices) return NO_VERTEX;
    sum += (u32)value + 1;
    return sum - 1;
  }
};

// A warp goes through a row, 32 neighbours of CSR or 128 bytes of a tail at a time; `stage` is
// shared memory of the warp's own. All lanes together call visit(present, id), which says whether
// that is enough, and after at most 4 of these flush().
template <RowKind KIND, class Visit, class Flush>
__device__ __forceinline__ void walk_by_warp(const MethodState& t, const MethodRows& rows,
                                             u32* stage, u32 vertex, Visit visit, Flush flush) {
  if (KIND == ROWS_CSR) {
    const u64 end = rows.offsets[(u64)vertex + 1];
    for (u64 first = rows.offsets[vertex]; first < end; first += 32) {
      const bool present = first + lane_id() < end;
      if (present) stage[lane_id()] = __ldg(&rows.columns[first + lane_id()]);
      __syncwarp();
      const u32 id = present ? stage[lane_id()] : 0;
      if (visit(present, id)) return;
      flush();
      __syncwarp();   // before the next neighbours take the same places
    }
    return;
  }
  const u32 n = rows.packed.num_vertices;
  u32 head = lane_id() == 0 ? __ldg(&rows.packed.heads[vertex]) : NO_VERTEX;
  if (head >= n && head != NO_VERTEX) report_damaged_row(t);
  if (visit(head < n, head)) return;
  flush();
  const Span row = row_span(rows.packed, vertex);
  for (u64 begin = row.begin; begin < row.end; begin += SEGMENT_BYTES) {
    const u64 end = row.end - begin > SEGMENT_BYTES ? begin + SEGMENT_BYTES : row.end;
    Cursor cursor = start_cursor<32>({begin, end});
    while (!cursor.done()) {
      Decoded decoded;
      bool whole = decode_chunk<32>(decoded, cursor, rows.packed, true);
      for (u32 k = 0; k < 4; k++) {
        const u32 id = decoded.ids[k];
        const bool present = decoded.present >> k & 1u;
        whole = whole && (!present || id < n);
        if (visit(present && id < n, id)) return;
      }
      if (!whole) report_damaged_row(t);
      flush();
    }
  }
}

#endif
