// Stands in for CUDA, mma and async.cuh where blocks do not talk to one another: they run one after another, each as
// in cluster.h. Copies into shared memory arrive when the thread waits for them, as late as they may.
#define ON_HOST
#undef THREADS
#undef CLUSTER
#undef SHARED_BYTES
static int THREADS, CLUSTER = 1, SHARED_BYTES = 16;
#include "cluster.h"

#include <functional>
#include <utility>

#undef blockIdx
#define __shared__
#define __align__(n)
#define __forceinline__ inline
struct Index3 { unsigned x, y, z; };
static Index3 blockIdx, gridDim, blockDim;
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
static float2 make_float2(float x, float y) { return {x, y}; }
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <typename T> static void __stcg(T* to, T v) { *to = v; }
#define __nanosleep(nanoseconds)
#define __sinf sinf
#define __cosf cosf

alignas(16) float shared[60000];

struct Given { unsigned a[4], b[2]; const float* row; };
static std::vector<Given> given;
static void sync_warp() { wait_at(warp_barriers[current / 32], 32); }

// m16n8k8: A's rows are groups of four lanes (two rows each), B's columns too; the last 13 bits are not looked at.
static void mma(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    given[current] = {{a0, a1, a2, a3}, {b0, b1}, nullptr};
    sync_warp();
    const int lane = current % 32, first = current - lane;
    auto tf32 = [](unsigned bits) { return __uint_as_float(bits & 0xffffe000u); };
    for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 8; ++k)
            c[i] += tf32(given[first + row % 8 * 4 + k % 4].a[row / 8 + k / 4 * 2]) *
                    tf32(given[first + column * 4 + k % 4].b[k / 4]);
    }
    sync_warp();
}
static void read_matrices(unsigned& m0, unsigned& m1, unsigned& m2, unsigned& m3, const float* row) {
    given[current].row = row;
    sync_warp();
    const int lane = current % 32;
    unsigned* to[4] = {&m0, &m1, &m2, &m3};
    for (int m = 0; m < 4; ++m) *to[m] = __float_as_uint(given[current - lane + 8 * m + lane / 4].row[lane % 4]);
    sync_warp();
}

struct Copy { float* to; const float* from; };
static std::vector<std::vector<std::vector<Copy>>> copies;  // of each thread, of each group
template <int COUNT, int TO, int FROM>
static void copy_quads(float* to, const float* from) {
    if (reinterpret_cast<size_t>(to) % 16 || reinterpret_cast<size_t>(from) % 16) abort();
    for (int i = 0; i < COUNT; ++i) copies[current].back().push_back({to + i * TO, from + i * FROM});
}
static void end_of_group() { copies[current].emplace_back(); }
template <int GROUPS>
static void await_groups() {
    auto& mine = copies[current];
    while (int(mine.size()) > GROUPS + 1) {
        for (const Copy& one : mine.front()) memcpy(one.to, one.from, 16);
        mine.erase(mine.begin());
    }
}
static std::vector<Barrier> team_barriers;
template <int THREADS_OF_TEAM>
static void team_barrier(int team) { wait_at(team_barriers[team], THREADS_OF_TEAM); }

static std::function<void()> body_of_kernel;
template <typename... P, size_t... I>
static void call(void (*f)(P...), void** with, std::index_sequence<I...>) { f(static_cast<P>(with[I])...); }
template <typename... P>
static void call(void (*f)(P...), void** with) { call(f, with, std::index_sequence_for<P...>()); }
static void run_grid(unsigned across, unsigned down, unsigned deep, int threads, unsigned seed) {
    THREADS = threads;
    gridDim = {across, down, deep};
    blockDim = {unsigned(threads), 1, 1};
    given.resize(threads);
    for (unsigned block = 0; block < across * down * deep; ++block) {
        blockIdx = {block % across, block / across % down, block / across / down};
        copies.assign(threads, {{}});
        team_barriers.assign(2, {});
        memset(shared, 0xff, sizeof shared);
        launch([] { body_of_kernel(); }, seed);
    }
}
