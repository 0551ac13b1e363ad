// After every device got the visited words of all: bring them into the order of the vertices.
//
// A thread owns a word. All that was marked is visited by now, so `marked` starts anew from the
// same words.
#include "devices/dealt.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
gather_words(Deal deal) {
  for (u64 w : grid_stride(deal.num_words)) {
    const u64 word = deal.received[w % deal.devices * deal.stride + w / deal.devices];
    deal.reached[w] = word;
    deal.marked[w] = word;
  }
}
