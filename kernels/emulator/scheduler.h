// What the two halves of the runtime share: lanes.cpp (what lanes call) and runtime.cpp (which lane
// runs).
#pragma once
#include "runtime.h"

namespace emulator {

extern SchedulerStack scheduler;
extern uint64_t random_state;
extern uint32_t yield_threshold;
extern bool failed;
extern char message[2048];
extern const char* const OP_NAMES[];

uint32_t random_bits();
uint32_t random_below(uint32_t bound);
const char* base_name(const char* path);

// Let the scheduler run other lanes until this one is ready again.
void park(Lane* lane, Op op);
// All lanes of the mask have arrived: give each its result and make them ready.
void resolve(Warp* warp, uint32_t lanes);

char* shared_begin();
size_t shared_bytes();

}  // namespace emulator
