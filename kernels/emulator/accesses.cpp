// Builds that watch every access compile the kernels with -fsanitize=thread but link them without
// its library, so that every access calls the functions below. races.cpp and counts.cpp note it.
#include "scheduler.h"

namespace emulator {

#if defined(EMULATOR_RACES) || defined(EMULATOR_COUNTS)

static void hook(void* address, unsigned bytes, Access kind, void* code) {
  if (!state.current || state.current->fiber.owns(address)) return;
  // A volatile access declares a race, so others may come between it and what the lane did before.
  if (kind == Access::VOLATILE_READ || kind == Access::VOLATILE_WRITE) maybe_yield();
  note_access(address, bytes, kind, code);
}

#else

void note_access(const void*, unsigned, Access, void*) {}
void watch_memory(const char*, size_t, const char*) {}
void forget_memory(const char*) {}

#endif

}  // namespace emulator

#define EXPORTED extern "C" __attribute__((visibility("default")))

// The device tells where its memory lies, and what it calls it.
EXPORTED void emulator_allocated(const char* begin, size_t bytes, const char* name) {
  emulator::watch_memory(begin, bytes, name);
}
EXPORTED void emulator_freed(const char* begin) { emulator::forget_memory(begin); }

#if defined(EMULATOR_RACES) || defined(EMULATOR_COUNTS)
#define HIDDEN extern "C" __attribute__((visibility("hidden")))
#define HOOKS(bytes)                                                                            \
  HIDDEN void __tsan_read##bytes(void* a) {                                                     \
    emulator::hook(a, bytes, emulator::Access::READ, __builtin_return_address(0));              \
  }                                                                                             \
  HIDDEN void __tsan_write##bytes(void* a) {                                                    \
    emulator::hook(a, bytes, emulator::Access::WRITE, __builtin_return_address(0));             \
  }                                                                                             \
  HIDDEN void __tsan_volatile_read##bytes(void* a) {                                            \
    emulator::hook(a, bytes, emulator::Access::VOLATILE_READ, __builtin_return_address(0));     \
  }                                                                                             \
  HIDDEN void __tsan_volatile_write##bytes(void* a) {                                           \
    emulator::hook(a, bytes, emulator::Access::VOLATILE_WRITE, __builtin_return_address(0));    \
  }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
HIDDEN void __tsan_read_range(void* a, size_t bytes) {
  emulator::hook(a, unsigned(bytes), emulator::Access::READ, __builtin_return_address(0));
}
HIDDEN void __tsan_write_range(void* a, size_t bytes) {
  emulator::hook(a, unsigned(bytes), emulator::Access::WRITE, __builtin_return_address(0));
}
HIDDEN void __tsan_init() {}
HIDDEN void __tsan_func_entry(void*) {}
HIDDEN void __tsan_func_exit() {}
#endif
