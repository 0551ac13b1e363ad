// Before devices tell each other what they marked: collect the words of each owner.
//
// A thread owns a word. The own piece need not travel: it goes to where those of the others arrive.
#include "devices/block_cyclic.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
scatter_words(BlockCyclic cut) {
  for (u64 w : grid_stride(cut.num_words)) {
    const u64 owner = w % cut.devices;
    u64* pieces = owner == cut.device ? cut.received : cut.sent;
    pieces[owner * cut.stride + w / cut.devices] = cut.marked[w];
  }
}
