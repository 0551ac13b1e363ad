// Short rows of small levels, through a cache in device memory of sectors that came over the bus.
//
// On roads and meshes, the next levels read the sectors that this one read, since neighbours lie
// side by side; and lanes of different warps read one sector in the same level. A sector has one
// place, which its number decides. The block takes turns, of one vertex a lane. A turn has four
// parts, with a barrier of the block between any two:
//
//   1. sectors that are in the cache are copied to the scratch memory,
//   2. lanes claim places for the others by an atomic: the largest sector of the turn gets a place,
//   3. the lane whose claim came first loads the sector for its row and for the cache; who got no
//      place loads for its row alone,
//   4. the other lanes that want the sector copy it.
//
// A tag is the number of the turn, from 1 on, above the number of the sector, so claims of this
// turn are larger than older ones. The barriers order all accesses to data and tags. Where the
// number of the turn overflows, claims fail, and rows are loaded without the cache.
#ifndef OOCBFS_CACHED_CUH
#define OOCBFS_CACHED_CUH
#include "bfs/expand.cuh"

#define TURN_BIT 36u

// What happens to a listed sector, in the bits that belong to the caller.
#define TO_LOAD 0u
#define TO_FILL 1u
#define TO_COPY 2u
#define ACTION_BIT 2u

__device__ __forceinline__ u64 cache_place(const Search& search, u64 sector) {
  return sector & (search.cache_sectors - 1);
}

__device__ __forceinline__ bool is_cached(u64 tag, u64 sector) {
  return tag >> TURN_BIT && (tag & ((1ull << TURN_BIT) - 1)) == sector;
}

// Do what is listed, as load_listed does; a sector for the cache is loaded whole.
__device__ __forceinline__ void do_listed(const Search& search, Scratch& scratch, const Rows& rows,
                                          u32 total) {
  __syncwarp();
  for (u32 from = 0; from < total; from += 16) {
    const u32 i = from + (lane_id() >> 1), half = lane_id() & 1u;
    const u64 sector = i < total ? scratch.listed[i] : 0;
    const u32 action = (u32)(sector >> ACTION_BIT) & 3u;
    const u64 offset = (sector & SECTOR_OFFSET) + 16 * half;
    uint4* place = &search.cache_data[2 * cache_place(search, offset >> 5) + half];
    uint4* staged = &scratch.halves[2 * (u32)(sector >> PLACE_BIT) + half];
    const bool needed = sector >> half & 1u;
    if (action == TO_COPY) {
      if (needed) *staged = *place;
    } else if (needed || (action == TO_FILL && offset < rows.readable_end)) {
      *staged = load_half_sector(rows, offset);
      if (action == TO_FILL) *place = *staged;
    }
    __syncwarp();   // a lane that ran ahead would load its half in another instruction
  }
}

// Stage every lane's short span, like stage_short. All lanes of the block call this together.
__device__ __forceinline__ StagedRow stage_cached(const Search& search, Scratch& scratch,
                                                  const Rows& rows, Span span, u64 turn) {
  const u64 first = span.begin >> 5;
  const u32 count = (u32)count_sectors(span);
  u32 total, missing = 0, claimed = 0;
  const u32 place = first_listed(count, total);
  for (u32 k = 0; k < count; k++) {
    const u64 tag = search.cache_tags[cache_place(search, first + k)];
    const bool is_slow = !is_fast(rows, first + k << 5);
    const bool cached = is_slow && is_cached(tag, first + k);
    const u64 action = cached ? TO_COPY : TO_LOAD;
    missing |= (u32)(is_slow && !cached) << k;
    scratch.listed[place + k] =
        is_slow && !cached ? 0 : listed_sector(span, k) | action << ACTION_BIT;
  }
  do_listed(search, scratch, rows, total);
  if (__syncthreads_or((int)missing)) {
    const u64 stamp = turn << TURN_BIT;
    for (u32 k = 0; k < count; k++)
      if (missing >> k & 1u) {
        u64* tag = &search.cache_tags[cache_place(search, first + k)];
        claimed |= (u32)(atomicMax(tag, stamp | first + k) < (stamp | first + k)) << k;
      }
    __syncthreads();
    u32 shared = 0;
    for (u32 k = 0; k < count; k++) {
      const u64 tag = search.cache_tags[cache_place(search, first + k)];
      const bool has_place = missing >> k & 1u && tag == (stamp | first + k);
      shared |= (u32)(has_place && !(claimed >> k & 1u)) << k;
      const u64 action = has_place ? TO_FILL : TO_LOAD;
      scratch.listed[place + k] =
          (missing & ~shared) >> k & 1u ? listed_sector(span, k) | action << ACTION_BIT : 0;
    }
    do_listed(search, scratch, rows, total);
    __syncthreads();
    for (u32 k = 0; k < count; k++)
      scratch.listed[place + k] =
          shared >> k & 1u ? listed_sector(span, k) | (u64)TO_COPY << ACTION_BIT : 0;
    do_listed(search, scratch, rows, total);
  }
  return start_row(scratch, span);
}

struct CachedScratch {
  Scratch& scratch;
  u64 turn;
};

// One short row per lane, by way of the cache.
template <class Tally>
__device__ __forceinline__ void expand_short(const Search& search, Tally& tally,
                                             CachedScratch& cached, const Rows& rows, Span span,
                                             u32 parent, u32 level) {
  const StagedRow row = stage_cached(search, cached.scratch, rows, span, cached.turn);
  expand_staged(search, tally, row, rows, parent, level);
}

#endif
