// Kernels that each break one rule, to see that the emulator notices.
#include "cuda/common.cuh"

extern "C" __global__ void waits_for_lanes_that_never_come(u32* out) {
  if (threadIdx.x < 16)
    out[threadIdx.x] = __ballot_sync(FULL_WARP, 1);
  else
    __syncthreads();
}

extern "C" __global__ void disagrees_about_the_mask(u32* out) {
  const u32 mask = threadIdx.x & 1u ? FULL_WARP : 0x0000ffffu;
  if (threadIdx.x < 16) out[threadIdx.x] = __ballot_sync(mask, 1);
}

extern "C" __global__ void is_not_in_its_mask(u32* out) {
  out[threadIdx.x] = __ballot_sync(0x0000ffffu, 1);
}

extern "C" __global__ void meets_two_barriers(u32* out) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  out[threadIdx.x] = 1;
}

extern "C" __global__ void forgets_syncwarp(u32* out) {
  __shared__ u32 box[32];
  box[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = box[31 - threadIdx.x];
}

extern "C" __global__ void reads_uninitialised_shared(u32* out) {
  __shared__ u32 box[32];
  out[threadIdx.x] = box[threadIdx.x];
}

extern "C" __global__ void counts_without_atomics(u32* out) { out[0] += 1; }

extern "C" __global__ void counts_with_atomics(u32* out) { atomicAdd(out, 1u); }

extern "C" __global__ void writes_behind_the_end(u32* out, u32 size) {
  if (threadIdx.x <= size) out[threadIdx.x] = 1;
}

// Lane i reads u32 number i * stride of host memory.
extern "C" __global__ void loads_with_stride(u32* out, const u32* host, u32 stride) {
  out[threadIdx.x] = __ldg(host + threadIdx.x * stride);
}
