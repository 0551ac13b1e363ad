// Fibers: one stack per CUDA thread. They are switched by hand, because ucontext makes two system
// calls a switch.
//
// A fiber only ever switches to the scheduler and back. Under AddressSanitizer every switch is
// announced, or the sanitizer takes the foreign stack for an overflow.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define EMULATOR_ASAN 1
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(EMULATOR_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define EMULATOR_UCONTEXT 1
#endif
#ifdef EMULATOR_UCONTEXT
#include <ucontext.h>
#endif

namespace emulator {

#ifdef EMULATOR_ASAN
constexpr size_t STACK_BYTES = 256 << 10;
#else
constexpr size_t STACK_BYTES = 64 << 10;
#endif
constexpr size_t GUARD_BYTES = 4096;

struct Fiber {
  char* stack = nullptr;
  void* saved = nullptr;
#ifdef EMULATOR_UCONTEXT
  ucontext_t context;
#endif
#ifdef EMULATOR_ASAN
  void* fake_stack = nullptr;
#endif

  bool owns(const void* address) const {
    return static_cast<const char*>(address) >= stack &&
           static_cast<const char*>(address) < stack + STACK_BYTES;
  }
};

struct SchedulerStack {
  Fiber self;
#ifdef EMULATOR_ASAN
  const void* bottom = nullptr;
  size_t bytes = 0;
#endif
};

#ifndef EMULATOR_UCONTEXT
// fibers.cpp: save the callee-saved registers and the stack pointer, continue on another stack.
extern "C" void oocbfs_switch_stack(void** save, void* next) __attribute__((visibility("hidden")));
#endif

// Make the fiber start in main at the next switch. Equal stack tops would put every fiber's hot
// frames into the same cache sets, so the tops are staggered by the fiber's number.
inline void start_fiber(Fiber& fiber, void (*main)(), unsigned number) {
  if (fiber.stack == nullptr) {
    void* pages = mmap(nullptr, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) abort();
    mprotect(pages, GUARD_BYTES, PROT_NONE);
    fiber.stack = static_cast<char*>(pages) + GUARD_BYTES;
  }
  const size_t top = STACK_BYTES - 64 - size_t(number * 5 % 15) * 256;
#if defined(EMULATOR_UCONTEXT)
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = top;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, main, 0);
#elif defined(__x86_64__)
  // Six callee-saved registers, the entry, and a zero return address that keeps the alignment.
  void** frame = reinterpret_cast<void**>(fiber.stack + top) - 8;
  memset(frame, 0, 8 * sizeof(void*));
  frame[6] = reinterpret_cast<void*>(main);
  fiber.saved = frame;
#else
  uint64_t* frame = reinterpret_cast<uint64_t*>(fiber.stack + top - 160);
  memset(frame, 0, 160);
  frame[11] = reinterpret_cast<uint64_t>(main);
  fiber.saved = frame;
#endif
}

inline void end_fiber(Fiber& fiber) {
  if (fiber.stack) munmap(fiber.stack - GUARD_BYTES, GUARD_BYTES + STACK_BYTES);
  fiber.stack = nullptr;
}

inline void swap_stacks(Fiber& from, Fiber& to) {
#if defined(EMULATOR_UCONTEXT)
  swapcontext(&from.context, &to.context);
#else
  oocbfs_switch_stack(&from.saved, to.saved);
#endif
}

// Scheduler → fiber.
inline void enter(SchedulerStack& scheduler, Fiber& fiber) {
#ifdef EMULATOR_ASAN
  __sanitizer_start_switch_fiber(&scheduler.self.fake_stack, fiber.stack, STACK_BYTES);
#endif
  swap_stacks(scheduler.self, fiber);
#ifdef EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(scheduler.self.fake_stack, nullptr, nullptr);
#endif
}

// The first thing a fiber does.
inline void entered_first(SchedulerStack& scheduler) {
#ifdef EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &scheduler.bottom, &scheduler.bytes);
#else
  (void)scheduler;
#endif
}

// Fiber → scheduler; a fiber that will not come back gives up its fake stack.
inline void leave(SchedulerStack& scheduler, Fiber& fiber, bool for_good) {
#ifdef EMULATOR_ASAN
  __sanitizer_start_switch_fiber(for_good ? nullptr : &fiber.fake_stack, scheduler.bottom,
                                 scheduler.bytes);
#else
  (void)for_good;
#endif
  swap_stacks(fiber, scheduler.self);
#ifdef EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(fiber.fake_stack, &scheduler.bottom, &scheduler.bytes);
#endif
}

}  // namespace emulator
