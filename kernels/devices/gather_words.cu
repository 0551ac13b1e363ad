// After every device got the visited words of all: bring them into the order of the vertices.
//
// A thread owns a word. All that was marked is visited by now, so `marked` starts anew from the
// same words.
#include "devices/block_cyclic.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
gather_words(BlockCyclic cut) {
  for (u64 w : grid_stride(cut.num_words)) {
    const u64 word = cut.received[w % cut.devices * cut.stride + w / cut.devices];
    cut.reached[w] = word;
    cut.marked[w] = word;
  }
}
