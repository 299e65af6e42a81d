// Stands in for CUDA and for cluster.cuh, so that a C++ compiler makes a program of the kernels: every thread of every
// block is a fiber that runs until it has to wait. The order in which fibers get their turns is drawn from a seed, so
// that a missing barrier shows as numbers that differ from order to order.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

using std::max;
using std::min;

#define __device__
#define __host__
#define __global__
#define __launch_bounds__(...)
#define IN_CLUSTER
#define SHARED_MEMORY(name) unsigned char* name = block_memory[fibers[current].block].get()
#define threadIdx (Index{fibers[current].thread})
#define blockIdx (Index{fibers[current].block})

#ifndef BLOCKS
#define BLOCKS CLUSTER  // as many as there are, in clusters of CLUSTER
#endif

struct Index { int x; };
struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    int thread, block;
    bool done;
};
struct Barrier { int waiting = 0, passed = 0; };

constexpr size_t STACK = 64 * 1024;
constexpr int HEAD_START = 30;  // turns that a block has before another one may go on
static std::vector<Fiber> fibers;
static std::vector<std::unique_ptr<unsigned char[]>> block_memory;
static std::vector<Barrier> block_barriers, warp_barriers, cluster_barriers;
static Barrier all;
static std::vector<float> lanes;
static int current;
static ucontext_t scheduler;

static void wait_at(Barrier& barrier, int members) {
    const int round = barrier.passed;
    if (++barrier.waiting == members) {
        barrier.waiting = 0;
        ++barrier.passed;
    }
    while (barrier.passed == round) swapcontext(&fibers[current].context, &scheduler);
}
static void __syncthreads() { wait_at(block_barriers[fibers[current].block], THREADS); }
static void cluster_barrier() { wait_at(cluster_barriers[fibers[current].block / CLUSTER], THREADS * CLUSTER); }
static float __shfl_xor_sync(unsigned, float value, int offset) {
    const int warp = current / 32, lane = current % 32;
    lanes[current] = value;
    wait_at(warp_barriers[warp], 32);
    const float other = lanes[warp * 32 + (lane ^ offset)];
    wait_at(warp_barriers[warp], 32);
    return other;
}
static unsigned __float_as_uint(float value) {
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static float __uint_as_float(unsigned bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <typename Value>
static void mail(Value* place, int block, Value value) {
    const int mine = fibers[current].block, theirs = mine / CLUSTER * CLUSTER + block;
    const auto offset = reinterpret_cast<unsigned char*>(place) - block_memory[mine].get();
    memcpy(block_memory[theirs].get() + offset, &value, sizeof value);
}

// Run body() as every thread of all blocks. Shared memory begins as NaN, as good as never written.
static void (*kernel)();
static void fiber() {
    kernel();
    fibers[current].done = true;
}
static void launch(void (*body)(), unsigned seed) {
    kernel = body;
    fibers = std::vector<Fiber>(THREADS * BLOCKS);
    block_barriers.assign(BLOCKS, {});
    cluster_barriers.assign(BLOCKS / CLUSTER, {});
    warp_barriers.assign(THREADS * BLOCKS / 32, {});
    all = {};
    lanes.assign(THREADS * BLOCKS, 0.0f);
    block_memory.clear();
    for (int block = 0; block < BLOCKS; ++block) {
        block_memory.emplace_back(new unsigned char[SHARED_BYTES]);
        memset(block_memory.back().get(), 0xff, SHARED_BYTES);
    }
    std::vector<int> order(fibers.size());
    for (size_t i = 0; i < fibers.size(); ++i) {
        Fiber& one = fibers[i];
        order[i] = one.thread = int(i);
        one.block = one.thread / THREADS;
        one.thread %= THREADS;
        one.done = false;
        one.stack.reset(new char[STACK]);
        getcontext(&one.context);
        one.context.uc_stack.ss_sp = one.stack.get();
        one.context.uc_stack.ss_size = STACK;
        one.context.uc_link = &scheduler;
        makecontext(&one.context, fiber, 0);
    }
    std::mt19937 draw(seed);
    size_t finished = 0;
    for (int round = 0, block = 0; finished < fibers.size(); ++round) {
        if (seed) std::shuffle(order.begin(), order.end(), draw);
        if (round % HEAD_START == 0) block = draw() % BLOCKS;
        for (int i : order) {
            Fiber& one = fibers[i];
            if (one.done || (seed && one.block != block)) continue;  // a block gets as far ahead as the barriers allow
            current = i;
            swapcontext(&scheduler, &one.context);
            finished += one.done;
        }
    }
}
