// The scheduler: blocks, warps and lanes take turns in a seeded random order on one CPU thread.
//
// A lane runs until it exits, meets a collective, a barrier or a load from host memory, or loses
// its turn before an atomic. Loads from host memory wait until no other lane of the warp can run:
// the lanes that then wait in one line of the source are one instruction of the warp.
#include <cstdio>
#include <string>

#include "scheduler.h"
#include "traffic.h"

namespace emulator {

static std::vector<Block> blocks;
static Block* loaded;   // the block whose shared memory is loaded
static void (*entry)(void*);
static void* entry_arguments;
static unsigned resident_blocks = 4;

// The linker names both ends of the section that holds all __shared__ variables.
extern "C" {
extern char __start_oocbfs_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_oocbfs_shared[] __attribute__((weak, visibility("hidden")));
}
char* shared_begin() { return __start_oocbfs_shared; }
size_t shared_bytes() { return size_t(__stop_oocbfs_shared - __start_oocbfs_shared); }

static void fiber_main() {
  entered_first(scheduler);
  entry(entry_arguments);
  park(state.current, Op::DONE);
  abort();
}

static void load_shared(Block* block) {
  if (loaded == block || shared_bytes() == 0) return;
  if (loaded && loaded->active) memcpy(loaded->shared.data(), shared_begin(), shared_bytes());
  memcpy(shared_begin(), block->shared.data(), shared_bytes());
  loaded = block;
}

// Shared memory starts as garbage, from a random stream of its own: the schedule of a seed must not
// depend on how much of it the kernels declare.
static void poison_shared(Block* block) {
  uint64_t bits = (random_state ^ 0xD1B54A32D192ED03ull) | 1;
  block->shared.resize(shared_bytes());
  for (char& byte : block->shared) {
    bits ^= bits << 13;
    bits ^= bits >> 7;
    bits ^= bits << 17;
    byte = char(bits >> 32);
  }
  if (loaded == block) loaded = nullptr;
}

static void start_block(Block* block, unsigned serial) {
  const dim3& size = state.block_dim;
  const unsigned num_lanes = size.x * size.y * size.z, num_warps = (num_lanes + 31) / 32;
  block->index = {serial % state.grid_dim.x, serial / state.grid_dim.x % state.grid_dim.y,
                  serial / state.grid_dim.x / state.grid_dim.y};
  block->serial = serial;
  block->live = num_lanes;
  block->at_barrier = block->said_yes = block->epoch = 0;
  block->active = true;
  poison_shared(block);
  if (block->lanes.size() < num_lanes) block->lanes.resize(num_lanes);
  block->warps.resize(num_warps);
  for (unsigned i = 0; i < num_warps; i++) {
    const unsigned count = num_lanes - i * 32 < 32 ? num_lanes - i * 32 : 32;
    const uint32_t all = ~0u >> (32 - count);
    block->warps[i] = {block, &block->lanes[i * 32], all, 0, all, 0, 0, 0};
  }
  for (unsigned i = 0; i < num_lanes; i++) {
    Lane& lane = block->lanes[i];
    lane.thread = {i % size.x, i / size.x % size.y, i / size.x / size.y};
    lane.warp = &block->warps[i / 32];
    lane.number = i % 32;
    lane.in_block = i;
    lane.op = Op::READY;
    start_fiber(lane.fiber, fiber_main, i);
  }
}

// No lane of the warp can run: let one instruction that reads host memory happen.
static bool release_loads(Warp* warp) {
  const Site* first = nullptr;
  uint64_t addresses[32];
  unsigned bytes[32];
  int count = 0;
  for (uint32_t rest = warp->live(); rest; rest &= rest - 1) {
    const Lane& lane = warp->lanes[__builtin_ctz(rest)];
    if (lane.op == Op::LOAD && (!first || lane.site.line < first->line)) first = &lane.site;
  }
  if (!first) return false;
  for (uint32_t rest = warp->live(); rest; rest &= rest - 1) {
    Lane& lane = warp->lanes[__builtin_ctz(rest)];
    if (lane.op != Op::LOAD || !(lane.site == *first)) continue;
    addresses[count] = lane.value;
    bytes[count++] = unsigned(lane.width);
    warp->ready |= 1u << lane.number;
  }
  for (uint32_t rest = warp->ready; rest; rest &= rest - 1)
    warp->lanes[__builtin_ctz(rest)].op = Op::READY;
  count_host_load(state.counters, addresses, bytes, count);
  count_instruction(warp, unsigned(count));
  return true;
}

static void release_barrier(Block* block) {
  const Lane* first = nullptr;
  for (Warp& warp : block->warps)
    for (uint32_t rest = warp.live(); rest; rest &= rest - 1) {
      Lane& lane = warp.lanes[__builtin_ctz(rest)];
      if (!first) first = &lane;
      if (!(lane.site == first->site))
        return fail("block %u meets two barriers at once: %s:%d and %s:%d", block->serial,
                    base_name(first->site.file), first->site.line, base_name(lane.site.file),
                    lane.site.line);
      lane.op = Op::READY;
      lane.result = block->said_yes;
      warp.ready |= 1u << lane.number;
    }
  for (Warp& warp : block->warps) lanes_converge(&warp);
  block->at_barrier = block->said_yes = 0;
  block->epoch++;
  state.counters.barriers++;
}

static void retire(Block* block, Warp* warp, const Lane* lane) {
  warp->done |= 1u << lane->number;
  warp->ready &= ~(1u << lane->number);
  block->live--;
  if (!warp->live()) count_finished(warp);
  for (uint32_t rest = warp->waiting; rest; rest &= rest - 1) {   // its exit may complete a mask
    const uint32_t needed = warp->lanes[__builtin_ctz(rest)].mask & warp->live();
    if ((needed & warp->waiting) == needed) return resolve(warp, needed);
  }
}

// Run every ready lane of the warp once, in random order; false if none can run.
static bool run_warp(Block* block, Warp* warp) {
  if (!warp->ready && !release_loads(warp)) return false;
  const uint32_t start = random_bits(), stride = random_bits() | 1;
  for (uint32_t k = 0; k < 32; k++) {
    const uint32_t i = (start + k * stride) & 31;
    if (!(warp->ready >> i & 1)) continue;
    Lane* lane = &warp->lanes[i];
    lane->op = Op::READY;
    state.current = lane;
    state.counters.switches++;
    enter(scheduler, lane->fiber);
    state.current = nullptr;
    if (failed) return true;
    if (lane->op == Op::DONE) retire(block, warp, lane);
    if (lane->op == Op::BARRIER) block->at_barrier++;
  }
  if (block->live && block->at_barrier == block->live) release_barrier(block);
  return true;
}

static void report_deadlock(const Block* block) {
  std::string text;
  for (const Warp& warp : block->warps)
    for (uint32_t rest = warp.live(); rest;) {
      const Lane& one = warp.lanes[__builtin_ctz(rest)];
      uint32_t same = 0;
      for (uint32_t all = rest; all; all &= all - 1) {
        const Lane& other = warp.lanes[__builtin_ctz(all)];
        if (other.op == one.op && other.site == one.site) same |= 1u << other.number;
      }
      char line[200];
      snprintf(line, sizeof line, "\n  warp %u lanes %08x wait in %s at %s:%d",
               unsigned(&warp - block->warps.data()), same, OP_NAMES[int(one.op)],
               base_name(one.site.file), one.site.line);
      text += line;
      rest &= ~same;
    }
  fail("deadlock in block %u:%s", block->serial, text.c_str());
}

// Let some warps of the block have a turn.
static void run_block(Block* block) {
  load_shared(block);
  for (unsigned turns = 1 + random_below(16); turns && block->live && !failed; turns--) {
    const unsigned num_warps = unsigned(block->warps.size()), first = random_below(num_warps);
    unsigned tried = 0;
    while (tried < num_warps) {
      Warp* warp = &block->warps[(first + tried) % num_warps];
      if (warp->live() && run_warp(block, warp)) break;
      tried++;
    }
    if (tried == num_warps) report_deadlock(block);
  }
}

int launch(void (*kernel)(void*), void* arguments, const unsigned* shape) {
  state.grid_dim = {shape[0], shape[1], shape[2]};
  state.block_dim = {shape[3], shape[4], shape[5]};
  state.counters.launches++;
  entry = kernel;
  entry_arguments = arguments;
  failed = false;
  message[0] = 0;
  loaded = nullptr;
  begin_race_detection();
  begin_counting();
  const unsigned num_blocks = shape[0] * shape[1] * shape[2];
  std::vector<unsigned> order(num_blocks);
  for (unsigned i = 0; i < num_blocks; i++) order[i] = i;
  for (unsigned i = num_blocks; i > 1; i--) std::swap(order[i - 1], order[random_below(i)]);
  const unsigned num_resident = num_blocks < resident_blocks ? num_blocks : resident_blocks;
  if (blocks.size() < num_resident) blocks.resize(num_resident);
  for (Block& block : blocks) block.active = false;
  std::vector<Block*> running;
  unsigned next = 0;
  while (next < num_resident) {
    start_block(&blocks[next], order[next]);
    running.push_back(&blocks[next++]);
  }
  while (!running.empty() && !failed) {
    const unsigned chosen = random_below(unsigned(running.size()));
    Block* block = running[chosen];
    run_block(block);
    if (block->live || failed) continue;
    block->active = false;
    if (next < num_blocks) {
      start_block(block, order[next++]);
    } else {
      running[chosen] = running.back();
      running.pop_back();
    }
  }
  end_counting(num_blocks * ((shape[3] * shape[4] * shape[5] + 31) / 32));
  return failed;
}

}  // namespace emulator

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void emulator_configure(uint64_t seed, unsigned num_resident, double yield_probability) {
  emulator::random_state = seed * 0x9E3779B97F4A7C15ull + 0x1234567;
  if (!emulator::random_state) emulator::random_state = 1;
  emulator::resident_blocks = num_resident ? num_resident : 1;
  emulator::yield_threshold = uint32_t(yield_probability * 4294967295.0);
}
// Release the stacks: a process may have only so many mappings, and many libraries.
EXPORTED void emulator_release() {
  for (emulator::Block& block : emulator::blocks)
    for (emulator::Lane& lane : block.lanes) emulator::end_fiber(lane.fiber);
  emulator::blocks.clear();
}
EXPORTED int emulator_map_host(const char* begin, size_t bytes) {
  emulator::State& state = emulator::state;
  if (state.num_host_ranges == emulator::MAX_HOST_RANGES) return 1;
  state.host_begin[state.num_host_ranges] = begin;
  state.host_end[state.num_host_ranges++] = begin + bytes;
  return 0;
}
EXPORTED void emulator_unmap_host(const char* begin) {
  emulator::State& state = emulator::state;
  for (int i = 0; i < state.num_host_ranges; i++)
    if (state.host_begin[i] == begin) {
      state.num_host_ranges--;
      state.host_begin[i] = state.host_begin[state.num_host_ranges];
      state.host_end[i] = state.host_end[state.num_host_ranges];
      return;
    }
}
EXPORTED const char* emulator_message() { return emulator::message; }
EXPORTED void emulator_counters(emulator::Counters* out, int reset) {
  *out = emulator::state.counters;
  if (!reset) return;
  emulator::state.counters = {};
  emulator::reset_atomics();
}
