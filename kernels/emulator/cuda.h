// The CUDA names that the kernels use, on the CPU. Included before every .cu of the emulator's
// build.
#pragma once
#include <cstring>
#include <type_traits>
#include <utility>

#include "runtime.h"

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// A section of its own: the scheduler swaps its contents when it changes to another resident block.
#define __shared__ static __attribute__((section("oocbfs_shared")))

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

#define threadIdx (emulator::state.current->thread)
#define blockIdx (emulator::state.current->warp->block->index)
#define blockDim (emulator::state.block_dim)
#define gridDim (emulator::state.grid_dim)

// Where the kernel calls from: default arguments are evaluated at the call.
#define EMULATOR_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define EMULATOR_HERE emulator::Site{file, line}

static inline void __syncthreads(EMULATOR_SITE) { emulator::barrier(EMULATOR_HERE); }
static inline int __syncthreads_count(int predicate, EMULATOR_SITE) {
  return int(emulator::barrier(EMULATOR_HERE, predicate != 0));
}
static inline int __syncthreads_or(int predicate, EMULATOR_SITE) {
  return emulator::barrier(EMULATOR_HERE, predicate != 0) != 0;
}
static inline int __syncthreads_and(int predicate, EMULATOR_SITE) {
  return emulator::barrier(EMULATOR_HERE, predicate == 0) == 0;
}
static inline void __syncwarp(unsigned mask = ~0u, EMULATOR_SITE) {
  emulator::collective(emulator::Op::SYNCWARP, mask, 0, 0, 32, EMULATOR_HERE);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate, EMULATOR_SITE) {
  return unsigned(
      emulator::collective(emulator::Op::BALLOT, mask, predicate != 0, 0, 32, EMULATOR_HERE));
}
static inline int __any_sync(unsigned mask, int predicate, EMULATOR_SITE) {
  return int(emulator::collective(emulator::Op::ANY, mask, predicate != 0, 0, 32, EMULATOR_HERE));
}
static inline int __all_sync(unsigned mask, int predicate, EMULATOR_SITE) {
  return int(emulator::collective(emulator::Op::ALL, mask, predicate != 0, 0, 32, EMULATOR_HERE));
}

namespace emulator {
template <class T>
static inline T shuffle(Op op, unsigned mask, T value, int parameter, int width, Site site) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA shuffles 4- and 8-byte types");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = collective(op, mask, bits, parameter, width, site);
  memcpy(&value, &bits, sizeof value);
  return value;
}
}  // namespace emulator

template <class T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, EMULATOR_SITE) {
  return emulator::shuffle(emulator::Op::SHFL, mask, value, source, width, EMULATOR_HERE);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, EMULATOR_SITE) {
  return emulator::shuffle(emulator::Op::SHFL_UP, mask, value, int(by), width, EMULATOR_HERE);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32,
                                 EMULATOR_SITE) {
  return emulator::shuffle(emulator::Op::SHFL_DOWN, mask, value, int(by), width, EMULATOR_HERE);
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, EMULATOR_SITE) {
  return emulator::shuffle(emulator::Op::SHFL_XOR, mask, value, bits, width, EMULATOR_HERE);
}

static inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
static inline int __ffs(int bits) { return __builtin_ffs(bits); }
static inline int __clz(int bits) { return bits ? __builtin_clz(unsigned(bits)) : 32; }
static inline int __clzll(long long bits) {
  return bits ? __builtin_clzll((unsigned long long)(bits)) : 64;
}

// Kernels read host memory by __ldg, and nothing else. It is counted once, as what it is.
template <class T>
#ifdef EMULATOR_COUNTS
__attribute__((no_sanitize("thread"), noinline))
#endif
static T __ldg(const T* address, EMULATOR_SITE) {
  emulator::load_host(address, sizeof(T), EMULATOR_HERE);
  return *address;
}

// A lane may lose its turn right before an atomic, never inside it.
#define EMULATOR_ATOMIC(name, expression)                                                     \
  template <class T>                                                                          \
  static inline T name(T* address, std::common_type_t<T> value) {                             \
    emulator::begin_atomic(address, sizeof(T), __builtin_return_address(0));                  \
    return emulator::update(address, [&](T old) { return T(expression); });                   \
  }

namespace emulator {
// Not instrumented: an atomic is noted once, as an atomic.
template <class T, class F>
__attribute__((no_sanitize("thread"), noinline)) static T update(T* address, F next) {
  const T old = *address;
  *address = next(old);
  return old;
}
}  // namespace emulator

EMULATOR_ATOMIC(atomicAdd, old + value)
EMULATOR_ATOMIC(atomicOr, old | value)
EMULATOR_ATOMIC(atomicAnd, old & value)
EMULATOR_ATOMIC(atomicMax, old < value ? value : old)
EMULATOR_ATOMIC(atomicMin, value < old ? value : old)
EMULATOR_ATOMIC(atomicExch, (void(old), value))

template <class T>
static inline T atomicCAS(T* address, std::common_type_t<T> expected,
                          std::common_type_t<T> value) {
  emulator::begin_atomic(address, sizeof(T), __builtin_return_address(0));
  return emulator::update(address, [&](T old) { return old == expected ? value : old; });
}

namespace emulator {
// Not instrumented: the arguments are the host's memory, and copied before a kernel sees them.
template <class... Parameters, size_t... Index>
__attribute__((no_sanitize("thread"))) static void call(void (*kernel)(Parameters...),
                                                       void** arguments,
                                                       std::index_sequence<Index...>) {
  kernel(*static_cast<std::remove_reference_t<Parameters>*>(arguments[Index])...);
}
template <class... Parameters>
static int launch_kernel(void (*kernel)(Parameters...), const unsigned* shape, void** arguments) {
  struct Call {
    void (*kernel)(Parameters...);
    void** arguments;
  } whole{kernel, arguments};
  return launch(
      [](void* pointer) __attribute__((no_sanitize("thread"))) {
        Call* made = static_cast<Call*>(pointer);
        call(made->kernel, made->arguments, std::index_sequence_for<Parameters...>{});
      },
      &whole, shape);
}
}  // namespace emulator

#define EMULATOR_EXPORT(kernel)                                                     \
  extern "C" __attribute__((visibility("default"))) int launch_##kernel(            \
      const unsigned* shape, void** arguments) {                                    \
    return emulator::launch_kernel(kernel, shape, arguments);                       \
  }
