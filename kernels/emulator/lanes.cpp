// What lanes call: collectives, barriers, loads from host memory, atomics.
#include <cstdarg>
#include <cstdio>

#include "scheduler.h"

namespace emulator {

State state;
SchedulerStack scheduler;
uint64_t random_state = 0x9E3779B97F4A7C15ull;
uint32_t yield_threshold = 1u << 28;
bool failed;
char message[2048];

const char* const OP_NAMES[] = {
    "ready",       "done",          "yield",          "__syncthreads",    "__ldg",
    "__syncwarp",  "__ballot_sync", "__any_sync",     "__all_sync",       "__shfl_sync",
    "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync"};

uint32_t random_bits() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return uint32_t((random_state * 0x2545F4914F6CDD1Dull) >> 32);
}
uint32_t random_below(uint32_t bound) {
  return uint32_t((uint64_t(random_bits()) * bound) >> 32);
}

void fail(const char* format, ...) {
  failed = true;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  if (state.current) leave(scheduler, state.current->fiber, false);
}

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

void park(Lane* lane, Op op) {
  lane->op = op;
  leave(scheduler, lane->fiber, op == Op::DONE);
}

void maybe_yield() {
  if (random_bits() < yield_threshold) park(state.current, Op::YIELD);
}

void begin_atomic(const void* address, unsigned bytes, void* code) {
  maybe_yield();
  state.counters.atomics++;
  note_access(address, bytes, Access::ATOMIC, code);
}

static void wait(Lane* lane, Op op, Site site) {
  lane->site = site;
  lane->warp->ready &= ~(1u << lane->number);
  park(lane, op);
}

uint64_t barrier(Site site, bool yes) {
  Lane* lane = state.current;
  lane->warp->block->said_yes += yes;
  wait(lane, Op::BARRIER, site);
  return lane->result;
}

void load_host(const void* address, unsigned bytes, Site site) {
  if (!is_host(address))
    fail("%s:%d: reads host memory that is not mapped", base_name(site.file), site.line);
  Lane* lane = state.current;
  lane->value = uint64_t(reinterpret_cast<uintptr_t>(address));
  lane->width = int(bytes);
  wait(lane, Op::LOAD, site);
}

void resolve(Warp* warp, uint32_t lanes) {
  const Op op = warp->lanes[__builtin_ctz(lanes)].op;
  state.counters.collectives++;
  uint32_t ballot = 0;
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    const int i = __builtin_ctz(rest);
    if (warp->lanes[i].value) ballot |= 1u << i;
  }
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    const int i = __builtin_ctz(rest);
    Lane& lane = warp->lanes[i];
    const int first = i & ~(lane.width - 1), end = first + lane.width;
    int source = -1;
    switch (op) {
      case Op::BALLOT: lane.result = ballot; break;
      case Op::ANY: lane.result = ballot != 0; break;
      case Op::ALL: lane.result = ballot == lanes; break;
      case Op::SHFL: source = first + (lane.parameter & (lane.width - 1)); break;
      case Op::SHFL_UP: source = i - lane.parameter < first ? i : i - lane.parameter; break;
      case Op::SHFL_DOWN: source = i + lane.parameter >= end ? i : i + lane.parameter; break;
      case Op::SHFL_XOR: source = (i ^ lane.parameter) >= end ? i : i ^ lane.parameter; break;
      default: break;
    }
    if (source >= 0)   // the value of a lane that takes no part is undefined: give nonsense
      lane.result = lanes >> source & 1 ? warp->lanes[source].value
                                        : 0xBADBADBADBADBADBull ^ random_bits();
  }
  for (uint32_t rest = lanes; rest; rest &= rest - 1)
    warp->lanes[__builtin_ctz(rest)].op = Op::READY;
  warp->ready |= lanes;
  warp->waiting &= ~lanes;
  // Only __syncwarp orders memory; the other collectives exchange registers.
  if (op == Op::SYNCWARP && lanes == warp->live()) warp->epoch++;
  if (lanes == warp->live()) lanes_converge(warp);
}

uint64_t collective(Op op, uint32_t mask, uint64_t value, int parameter, int width, Site site) {
  Lane* lane = state.current;
  Warp* warp = lane->warp;
  const uint32_t me = 1u << lane->number;
  lane->op = op;
  lane->mask = mask;
  lane->value = value;
  lane->parameter = parameter;
  lane->width = width;
  lane->site = site;
  warp->ready &= ~me;
  if (!(mask & me)) {
    fail("%s:%d: lane %u calls %s with mask %08x, which does not name it", base_name(site.file),
         site.line, lane->number, OP_NAMES[int(op)], mask);
  }
  const uint32_t needed = mask & warp->live();
  const uint32_t here = (needed & warp->waiting) | me;
  if (here != me) {   // one waiting lane stands for all: each was compared when it came
    const Lane& other = warp->lanes[__builtin_ctz(here & ~me)];
    if (other.op != op || other.mask != mask || !(other.site == site)) {
      fail("%s:%d: lane %u calls %s with mask %08x, but lane %u of its mask waits in %s with mask "
           "%08x at %s:%d",
           base_name(site.file), site.line, lane->number, OP_NAMES[int(op)], mask, other.number,
           OP_NAMES[int(other.op)], other.mask, base_name(other.site.file), other.site.line);
    }
  }
  warp->waiting |= me;
  if (here == needed)
    resolve(warp, needed);   // the last to arrive goes on without a switch
  else
    park(lane, op);
  return lane->result;
}

}  // namespace emulator
