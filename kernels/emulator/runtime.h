// What the CUDA names in cuda.h and the scheduler in runtime.cpp share.
//
// Everything is hidden inside one shared object, so that several builds (options, sanitizers) can
// be loaded side by side without one of them using the other's state.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fibers.h"

struct uint3 {
  unsigned x, y, z;
};
typedef uint3 dim3;

namespace emulator {

// What a lane is doing; everything from SYNCWARP on is a collective of the lanes in a mask.
enum class Op : uint8_t {
  READY, DONE, YIELD, BARRIER, LOAD, SYNCWARP, BALLOT, ANY, ALL, SHFL, SHFL_UP, SHFL_DOWN, SHFL_XOR,
};

struct Site {
  const char* file;
  int line;
  bool operator==(const Site& other) const { return line == other.line && file == other.file; }
};

struct Warp;
struct Block;

struct Lane {
  uint3 thread;
  Warp* warp;
  unsigned number;   // within the warp
  unsigned in_block;
  Op op;
  Site site;
  uint32_t mask;
  uint64_t value, result;
  int parameter, width;
  Fiber fiber;
};

struct Warp {
  Block* block;
  Lane* lanes;
  uint32_t existing, done, ready, waiting;
  uint32_t epoch;    // counts __syncwarp of all live lanes: what orders their memory accesses
  uint64_t work;     // memory instructions, where they are counted
  uint32_t live() const { return existing & ~done; }
};

struct Block {
  uint3 index;
  unsigned serial;
  unsigned live, at_barrier, said_yes;
  uint32_t epoch;    // counts __syncthreads
  bool active;
  std::vector<Lane> lanes;
  std::vector<Warp> warps;
  std::vector<char> shared;
};

struct Counters {
  uint64_t launches, switches, collectives, barriers, atomics;
  uint64_t host_loads, host_sectors, host_lines;
  uint64_t host_requests[4];   // of __ldg: 32, 64, 96 and 128 bytes, runs of sectors in one line
  uint64_t races, accesses;
  // Only where every access is counted (counts.cpp). Loads are those from host and device memory.
  uint64_t loads, load_lanes;
  uint64_t device_sectors_read, device_sectors_written;
  double busiest_work, mean_work;   // of the warps of a launch, summed up over launches
};

constexpr int MAX_HOST_RANGES = 32;

struct State {
  Lane* current;
  dim3 block_dim, grid_dim;
  Counters counters;
  int num_host_ranges;
  const char *host_begin[MAX_HOST_RANGES], *host_end[MAX_HOST_RANGES];
};
extern State state;

inline bool is_host(const void* address) {
  const char* byte = static_cast<const char*>(address);
  for (int i = 0; i < state.num_host_ranges; i++)
    if (byte >= state.host_begin[i] && byte < state.host_end[i]) return true;
  return false;
}

enum class Access : uint8_t { READ, WRITE, VOLATILE_READ, VOLATILE_WRITE, ATOMIC };

uint64_t collective(Op op, uint32_t mask, uint64_t value, int parameter, int width, Site site);
// All lanes of the block meet; returns how many of them said yes.
uint64_t barrier(Site site, bool yes = false);
void load_host(const void* address, unsigned bytes, Site site);
void maybe_yield();
// Report what went wrong and stop the lane that did it. It never goes on: the launch ends.
void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));
int launch(void (*entry)(void*), void* arguments, const unsigned* grid_and_block);
void begin_atomic(const void* address, unsigned bytes, void* code);
void note_access(const void* address, unsigned bytes, Access kind, void* code);

// races.cpp and counts.cpp: these do nothing in builds that watch no accesses.
void begin_race_detection();
void watch_memory(const char* begin, size_t bytes, const char* name);
void forget_memory(const char* begin);
// counts.cpp: these do nothing in builds that count no accesses.
void begin_counting();
void end_counting(unsigned num_warps);
void count_instruction(Warp* warp, unsigned lanes);
void count_finished(const Warp* warp);
void lanes_converge(Warp* warp);
void reset_atomics();

}  // namespace emulator
