// Before devices tell each other what they marked: collect the words of each owner.
//
// A thread owns a word. The own piece need not travel: it goes to where those of the others arrive.
#include "devices/dealt.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_MULTIPROCESSOR)
deal_words(Deal deal) {
  for (u64 w : grid_stride(deal.num_words)) {
    const u64 owner = w % deal.devices;
    u64* pieces = owner == deal.device ? deal.received : deal.sent;
    pieces[owner * deal.stride + w / deal.devices] = deal.marked[w];
  }
}
