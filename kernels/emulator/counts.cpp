// Counts every access: sectors of device memory, loads from host memory that are no __ldg, lanes of
// a load, atomics by array and by word, and how much the warps of a launch differ.
//
// Lanes run one after the other, but a warp issues an instruction once for all of them. So accesses
// are put together: the k-th time that lanes come to one place in the code, since all lanes of the
// warp last met, is one instruction. Its lanes move every sector once. __ldg is exact: there lanes
// do wait for each other (see runtime.cpp).
#include "scheduler.h"

#include <map>
#include <string>
#include <unordered_map>

namespace emulator {

#ifdef EMULATOR_COUNTS

struct Array {
  size_t bytes;
  std::string name;
};
struct Sector {
  uint64_t number;
  uint32_t next;   // in the pool, 0: none
};
// The accesses of one warp to one place in the code.
struct Place {
  uint64_t epoch = 0;
  uint32_t times[32];             // how often each lane came here
  std::vector<uint32_t> sectors;  // of each instruction: the first in the pool
};
struct WarpAccesses {
  uint64_t epoch = 1;
  std::unordered_map<void*, Place> places;
  std::vector<Sector> pool{1};
};
struct Hottest {
  const char* name;
  uint64_t word, atomics;
};

static std::map<const char*, Array> arrays;
static const Array* found_array;
static const char* found_begin;
static std::unordered_map<const Warp*, WarpAccesses> warps;
static const Warp* last_warp;   // the warp that was looked for last
static WarpAccesses* last_accesses;
static std::map<std::string, uint64_t> atomics_by_array;
static std::unordered_map<const void*, uint64_t> atomics_by_word;
static std::string hottest_name;
static Hottest hottest;
static uint64_t busiest, total;

static const Array* find_array(const char* byte) {
  if (found_array && byte >= found_begin && byte < found_begin + found_array->bytes)
    return found_array;
  auto after = arrays.upper_bound(byte);
  if (after == arrays.begin()) return nullptr;
  --after;
  if (byte >= after->first + after->second.bytes) return nullptr;
  found_begin = after->first;
  return found_array = &after->second;
}

void watch_memory(const char* begin, size_t bytes, const char* name) {
  arrays[begin] = {bytes, *name ? name : "other"};
  found_array = nullptr;
}
void forget_memory(const char* begin) {
  arrays.erase(begin);
  found_array = nullptr;
}

static WarpAccesses& accesses_of(const Warp* warp) {
  if (warp != last_warp) {
    last_accesses = &warps[warp];
    last_warp = warp;
  }
  return *last_accesses;
}

void begin_counting() {
  warps.clear();
  last_warp = nullptr;
  busiest = total = 0;
}
void count_finished(const Warp* warp) {
  total += warp->work;
  if (warp->work > busiest) busiest = warp->work;
  warps.erase(warp);
  last_warp = nullptr;
}
void end_counting(unsigned num_warps) {
  state.counters.busiest_work += double(busiest);
  state.counters.mean_work += double(total) / num_warps;
}
void reset_atomics() {
  atomics_by_array.clear();
  atomics_by_word.clear();
  hottest = {};
}
void lanes_converge(Warp* warp) {
  WarpAccesses& accesses = accesses_of(warp);
  accesses.epoch++;
  accesses.pool.resize(1);
}
void count_instruction(Warp* warp, unsigned lanes) {
  warp->work++;
  state.counters.loads++;
  state.counters.load_lanes += lanes;
}

static void count_atomic(const char* byte, unsigned bytes, Warp* warp) {
  const bool shared = byte >= shared_begin() && byte < shared_begin() + shared_bytes();
  const Array* array = shared ? nullptr : find_array(byte);
  const char* name = shared ? "shared_memory" : array ? array->name.c_str() : "other";
  const char* begin = shared ? shared_begin() : array ? found_begin : byte;
  if (*name == '.') return;   // kernels count there what they do: no part of what they do
  warp->work++;
  atomics_by_array[name]++;
  if (shared) return;   // the same address is another word in every block
  const uint64_t count = ++atomics_by_word[byte];
  if (count <= hottest.atomics) return;
  if (hottest_name != name) hottest_name = name;
  hottest = {hottest_name.c_str(), uint64_t(byte - begin) / bytes, count};
}

// Add a sector to an instruction; tells whether it is new, and whether its line is.
static void add_sector(WarpAccesses& accesses, uint32_t& first, uint64_t number, bool& is_new,
                       bool& is_new_line) {
  is_new = is_new_line = true;
  for (uint32_t i = first; i; i = accesses.pool[i].next) {
    if (accesses.pool[i].number / 4 == number / 4) is_new_line = false;
    if (accesses.pool[i].number == number) is_new = false;
  }
  if (!is_new) return;
  accesses.pool.push_back({number, first});
  first = uint32_t(accesses.pool.size() - 1);
}

void note_access(const void* address, unsigned bytes, Access kind, void* code) {
  Lane* lane = state.current;
  const char* byte = static_cast<const char*>(address);
  if (!lane || lane->fiber.owns(byte)) return;
  Warp* warp = lane->warp;
  if (kind == Access::ATOMIC) return count_atomic(byte, bytes, warp);
  const bool host = is_host(byte);
  if (!host && !find_array(byte)) return;   // shared memory, threadIdx and the like
  const bool loads = kind == Access::READ || kind == Access::VOLATILE_READ;
  Counters& counters = state.counters;
  counters.accesses++;
  WarpAccesses& accesses = accesses_of(warp);
  Place& place = accesses.places[code];
  if (place.epoch != accesses.epoch) {
    place.epoch = accesses.epoch;
    place.sectors.clear();
    for (uint32_t& times : place.times) times = 0;
  }
  const uint32_t time = place.times[lane->number]++;
  if (time == place.sectors.size()) {
    place.sectors.push_back(0);
    warp->work++;
    counters.loads += loads;
    counters.host_loads += loads && host;
  }
  counters.load_lanes += loads;
  for (uint64_t s = uint64_t(byte) / 32; s <= (uint64_t(byte) + bytes - 1) / 32; s++) {
    bool is_new, is_new_line;
    add_sector(accesses, place.sectors[time], s, is_new, is_new_line);
    counters.host_sectors += host && is_new;
    counters.host_lines += host && is_new_line;
    counters.device_sectors_read += !host && loads && is_new;
    counters.device_sectors_written += !host && !loads && is_new;
  }
}

#else

void begin_counting() {}
void end_counting(unsigned) {}
void count_instruction(Warp*, unsigned) {}
void count_finished(const Warp*) {}
void lanes_converge(Warp*) {}
void reset_atomics() {}

#endif

}  // namespace emulator

#define EXPORTED extern "C" __attribute__((visibility("default")))

#ifdef EMULATOR_COUNTS
EXPORTED void emulator_reset_atomics() { emulator::reset_atomics(); }
// The atomics on array number `which`, by name; null after the last.
EXPORTED const char* emulator_atomics(unsigned which, uint64_t* atomics) {
  for (const auto& [name, count] : emulator::atomics_by_array)
    if (which-- == 0) {
      *atomics = count;
      return name.c_str();
    }
  return nullptr;
}
EXPORTED emulator::Hottest emulator_hottest_word() { return emulator::hottest; }
#endif
