// What one load instruction of a warp moves over the bus: distinct 32-byte sectors, the 128-byte
// lines they lie in, and the read requests that runs of neighbouring sectors in a line make.
#pragma once
#include "runtime.h"

namespace emulator {

inline void count_host_load(Counters& counters, const uint64_t* addresses, const unsigned* bytes,
                            int count) {
  uint64_t lines[64];
  uint8_t sectors[64];
  int num_lines = 0;
  counters.host_loads++;
  for (int i = 0; i < count; i++)
    for (uint64_t s = addresses[i] / 32; s <= (addresses[i] + bytes[i] - 1) / 32; s++) {
      int k = 0;
      while (k < num_lines && lines[k] != s / 4) k++;
      if (k == num_lines) {
        lines[num_lines] = s / 4;
        sectors[num_lines++] = 0;
      }
      sectors[k] |= uint8_t(1u << (s % 4));
    }
  counters.host_lines += uint64_t(num_lines);
  for (int k = 0; k < num_lines; k++) {
    counters.host_sectors += uint64_t(__builtin_popcount(sectors[k]));
    for (int run = 0, s = 0; s <= 4; s++) {
      if (s < 4 && (sectors[k] >> s & 1)) {
        run++;
      } else if (run) {
        counters.host_requests[run - 1]++;
        run = 0;
      }
    }
  }
}

}  // namespace emulator
