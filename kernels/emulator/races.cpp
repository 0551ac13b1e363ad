// The race detector: every access is noted (see accesses.cpp).
//
// Two accesses to one 4-byte cell of an allocation conflict if different lanes make them, one
// writes, not both are atomic (volatile counts as atomic: it declares the race), and nothing
// orders them: a barrier of their block, or a __syncwarp of their warp. An access outside every
// allocation is reported too.
#include "scheduler.h"

#include <dlfcn.h>

#include <cstdio>
#include <map>

namespace emulator {

#ifdef EMULATOR_RACES

struct Past {
  uint32_t launch = 0, block = 0, lane = 0, block_epoch = 0, warp_epoch = 0;
  Access kind = Access::READ;
  void* code = nullptr;
};
struct Cell {
  Past write, read, older_read;
};
struct Allocation {
  size_t bytes;
  std::vector<Cell> cells;
};

static std::map<const char*, Allocation> allocations;
static std::map<std::pair<unsigned, size_t>, Cell> shared_cells;
static uint32_t launch_number;

void begin_race_detection() {
  launch_number++;
  shared_cells.clear();
}

static bool is_atomic(Access kind) { return kind >= Access::VOLATILE_READ; }

static bool ordered(const Past& past, const Past& now) {
  if (past.launch != now.launch) return true;
  if (is_atomic(past.kind) && is_atomic(now.kind)) return true;
  if (past.block != now.block) return false;
  if (past.lane == now.lane || past.block_epoch < now.block_epoch) return true;
  return past.lane / 32 == now.lane / 32 && past.warp_epoch < now.warp_epoch;
}

static long offset_of(void* code) {
  Dl_info info;
  return dladdr(code, &info) ? long(static_cast<char*>(code) - static_cast<char*>(info.dli_fbase))
                             : 0;
}

static void report(const char* where, const Past& past, const Past& now) {
  static const char* const kinds[] = {"read", "write", "volatile read", "volatile write",
                                       "atomic"};
  state.counters.races++;
  fail("race on %s: %s by block %u thread %u at +0x%lx, after %s by block %u thread %u at +0x%lx",
       where, kinds[int(now.kind)], now.block, now.lane, offset_of(now.code),
       kinds[int(past.kind)], past.block, past.lane, offset_of(past.code));
}

static void note(Cell& cell, const Past& now, const char* where) {
  const bool writes = now.kind != Access::READ && now.kind != Access::VOLATILE_READ;
  if (!ordered(cell.write, now)) {
    report(where, cell.write, now);
  } else if (writes && !ordered(cell.read, now)) {
    report(where, cell.read, now);
  } else if (writes && !ordered(cell.older_read, now)) {
    report(where, cell.older_read, now);
  }
  if (writes) {
    cell.write = now;
  } else {
    if (cell.read.lane != now.lane || cell.read.block != now.block) cell.older_read = cell.read;
    cell.read = now;
  }
}

template <class T>
static bool lies_in(const char* byte, const T* first, size_t count) {
  return byte >= reinterpret_cast<const char*>(first) &&
         byte < reinterpret_cast<const char*>(first + count);
}

// What threadIdx and the like read, and the constants of the shared object itself.
static bool is_runtime(const char* byte, const Block* block) {
  Dl_info info;
  return lies_in(byte, &state, 1) || lies_in(byte, block, 1) ||
         lies_in(byte, block->lanes.data(), block->lanes.size()) ||
         lies_in(byte, block->warps.data(), block->warps.size()) || dladdr(byte, &info);
}

void note_access(const void* address, unsigned bytes, Access kind, void* code) {
  Lane* lane = state.current;
  const char* byte = static_cast<const char*>(address);
  if (!lane || lane->fiber.owns(byte)) return;
  state.counters.accesses++;
  const Block* block = lane->warp->block;
  const Past now{launch_number,      block->serial, lane->in_block, block->epoch,
                 lane->warp->epoch, kind,          code};
  if (byte >= shared_begin() && byte < shared_begin() + shared_bytes()) {
    const size_t first = size_t(byte - shared_begin());
    for (size_t cell = first / 4; cell <= (first + bytes - 1) / 4; cell++)
      note(shared_cells[{block->serial, cell}], now, "shared memory");
    return;
  }
  auto found = allocations.upper_bound(byte);
  if (found != allocations.begin()) {
    --found;
    const size_t first = size_t(byte - found->first);
    if (first + bytes <= found->second.bytes) {
      for (size_t cell = first / 4; cell <= (first + bytes - 1) / 4; cell++)
        note(found->second.cells[cell], now, "device memory");
      return;
    }
  }
  if (is_runtime(byte, block)) return;
  fail("block %u thread %u touches %u bytes outside every allocation at +0x%lx", block->serial,
       lane->in_block, bytes, offset_of(code));
}

void watch_memory(const char* begin, size_t bytes, const char*) {
  allocations[begin] = {bytes, std::vector<Cell>((bytes + 3) / 4)};
}
void forget_memory(const char* begin) { allocations.erase(begin); }

#else

void begin_race_detection() {}

#endif

}  // namespace emulator
