// Stands in for the tensor cores and the other instructions that tile.cu wants, behind cluster.h.
#define ON_HOST

struct float4 { float x, y, z, w; };
template <typename Value>
static Value __ldcg(const Value* place) { return *place; }

// What a lane brings to a product. Of each number the tensor cores see the first 19 bits.
struct Operands { unsigned a[4], b[2]; };
static std::vector<Operands> operands(THREADS * BLOCKS);

static void mma(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    const auto seen = [](unsigned bits) { return double(__uint_as_float(bits & 0xffffe000u)); };
    const int warp = current / 32, group = current % 32 / 4, fourth = current % 4;
    operands[current] = {{a0, a1, a2, a3}, {b0, b1}};
    wait_at(warp_barriers[warp], 32);
    for (int i = 0; i < 4; ++i) {
        double sum = c[i];
        for (int k = 0; k < 8; ++k)
            sum += seen(operands[warp * 32 + group * 4 + k % 4].a[k / 4 * 2 + i / 2]) *
                   seen(operands[warp * 32 + (2 * fourth + i % 2) * 4 + k % 4].b[k / 4]);
        c[i] = float(sum);
    }
    wait_at(warp_barriers[warp], 32);
}

// Barriers of the whole grid and of some of a block's warps.
struct GridBarrier {
    unsigned *count, target;
    void wait() { wait_at(all, THREADS * BLOCKS); }
};
constexpr int members(int barrier);
static Barrier some[BLOCKS][16];
template <int BARRIER>
static void wait() { wait_at(some[fibers[current].block][BARRIER], members(BARRIER)); }
template <int BARRIER>
static void arrive() {
    Barrier& barrier = some[fibers[current].block][BARRIER];
    if (++barrier.waiting < members(BARRIER)) return;
    barrier.waiting = 0;
    ++barrier.passed;
}
static void __syncwarp() { wait_at(warp_barriers[current / 32], 32); }

// Copies arrive as late as they may.
struct Copy { float* to; const float* from; int group; };
static std::vector<std::vector<Copy>> copies(THREADS * BLOCKS);
static std::vector<int> groups(THREADS * BLOCKS);
static void copy16(float* to, const float* from) { copies[current].push_back({to, from, groups[current]}); }
static void end_of_group() { ++groups[current]; }
template <int GROUPS>
static void await_groups() {
    std::vector<Copy> later;
    for (const Copy& copy : copies[current])
        if (copy.group < groups[current] - GROUPS) memcpy(copy.to, copy.from, 16);
        else later.push_back(copy);
    copies[current] = later;
}
