// Kernels whose traffic is known, to see that the emulator counts it.
#include "cuda/common.cuh"

// Lane i reads word i * stride by a plain load and writes word i.
extern "C" __global__ void copies_with_stride(u32* out, const u32* in, u32 stride) {
  out[threadIdx.x] = in[threadIdx.x * stride];
}

// The same by an access that declares a race.
extern "C" __global__ void copies_volatile(u32* out, const u32* in, u32 stride) {
  *(volatile u32*)&out[threadIdx.x] = *(const volatile u32*)&in[threadIdx.x * stride];
}

// Lane i reads i words: the k-th of all lanes are one instruction.
extern "C" __global__ void loops_unevenly(u32* out, const u32* in, u32) {
  u32 sum = 0;
#pragma GCC unroll 1
  for (u32 k = 0; k < threadIdx.x; k++) sum += in[k];
  out[threadIdx.x] = sum;
}

// Two loads by one place in the code, between which all lanes meet.
extern "C" __global__ void meets_between_loads(u32* out, const u32* in, u32 stride) {
  u32 sum = 0;
#pragma GCC unroll 1
  for (u32 k = 0; k < 2; k++) {
    if (lane_id() % 2 == k) sum += in[lane_id() * stride];
    __syncwarp();
  }
  out[threadIdx.x] = sum;
}

extern "C" __global__ void adds_to_words(u32* out, u32* in, u32 stride) {
  atomicAdd(&out[threadIdx.x % stride], 1u);
  if (threadIdx.x < 3) atomicOr(&in[7], 1u);
}

// The first warp alone reads 31 times.
extern "C" __global__ void works_unevenly(u32* out, const u32* in, u32) {
  u32 sum = 0;
#pragma GCC unroll 1
  for (u32 k = 0; k < (threadIdx.x < 32 ? 31 : 0); k++) sum += in[k];
  out[threadIdx.x] = sum;
}

// Whoever finds the word free takes it: one thread of all.
extern "C" __global__ void takes_once(u32* out, u32* in, u32) {
  if (atomicCAS(&in[0], 0u, threadIdx.x + 1) == 0u) atomicAdd(&out[0], 1u);
}

extern "C" __global__ void asks_the_block(u32* out, const u32*, u32 limit) {
  const int count = __syncthreads_count(threadIdx.x < limit);
  const int any = __syncthreads_or(threadIdx.x < limit);
  const int all = __syncthreads_and(threadIdx.x < limit);
  out[threadIdx.x] = (u32)(count << 2 | any << 1 | all);
}
