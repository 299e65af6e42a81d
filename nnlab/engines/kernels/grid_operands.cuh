// How loop_grid.cu's products get their operands: from the L2 cache into shared memory, a few chunks ahead of the
// products, and from there into the registers of the tensor cores.
//
// A strip is 32 lines of an operand and a chunk of 16 steps of k. Four warps copy it, 16 bytes a lane. On the way out,
// lane 4g + t takes lines 4g .. 4g + 3 and k = 4t .. 4t + 3. The tensor cores number lines and k differently, but any
// order gives the same product as long as A and B agree on k, and then a lane ends up with four sums side by side.

constexpr int WARPS = THREADS / 32;
constexpr int SIDE = 32;             // lines of a strip, and of a warp's tile of sums
constexpr int CHUNK = 16;            // steps of k
constexpr int STRIP = SIDE * CHUNK;  // floats
constexpr int QUEUED = 80;           // strips that fit into the queue
constexpr int TEAMS = WARPS / 4;     // of warps that copy a strip each
static_assert(TEAMS == 2 || TEAMS == 4, "a block has 8 or 16 warps");

__host__ __device__ constexpr int divided_up(int n, int by) { return (n + by - 1) / by; }
__device__ inline int lane_group() { return threadIdx.x % 32 / 4; }
__device__ inline int lane_fourth() { return threadIdx.x % 4; }
// The thread's number, in a way that keeps the compiler from working out all addresses of a step before its first step:
// they would not fit into registers.
__device__ inline int thread_number() {
    int thread = threadIdx.x;
    asm volatile("" : "+r"(thread));
    return thread & (THREADS - 1);  // tells the compiler its range
}
__device__ inline Quad read(const float* place) { return *reinterpret_cast<const Quad*>(place); }

using Registers = float[4][4];  // a lane's share of a strip: [line][k]

// Rows in device memory. `more` is a constant, so that it costs nothing. Rows and columns past the end may be read:
// what comes of them is not used, and there is memory behind.
template <int STRIDE>
struct Rows {
    const float* first;
    __device__ const float* row(int r, int more) const { return first + r * STRIDE + more * STRIDE; }
};
template <int STRIDE>
struct ChosenRows {
    const float* first;
    const int* numbers;
    __device__ const float* row(int r, int more) const { return first + size_t(numbers[r + more]) * STRIDE; }
};

// An operand whose lines are rows, along which k runs.
template <typename From>
struct Along {
    From from;
    __device__ const float* piece(int line, int k, int fourth, int lane, int more_lines, int more_k) const {
        return from.row(line + 8 * fourth + lane / 4, more_lines) + k + 4 * (lane % 4) + more_k;
    }
    // Where the piece lies in the strip: lines 4 apart in different banks.
    __device__ static int place(int fourth, int lane) {
        return ((8 * fourth + lane / 4) ^ (lane / 16)) * CHUNK + 4 * (lane % 4);
    }
    __device__ static void take(Registers& strip, const float* from) {
        const int group = lane_group();
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const Quad four = read(from + (4 * group + (q ^ group % 2)) * CHUNK + 4 * lane_fourth());
#pragma unroll
            for (int i = 0; i < 4; ++i) strip[q][i] = four.at[i];
        }
    }
};

// An operand whose lines are columns: a row for each k.
template <typename From>
struct Beside {
    From from;
    __device__ const float* piece(int line, int k, int fourth, int lane, int more_lines, int more_k) const {
        return from.row(k + 4 * fourth + lane / 8, more_k) + line + 4 * (lane % 8) + more_lines;
    }
    __device__ static int place(int fourth, int lane) {
        return (4 * fourth + lane / 8) * SIDE + 4 * (lane % 8 ^ 2 * fourth);
    }
    __device__ static void take(Registers& strip, const float* from) {
        const int fourth = lane_fourth();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const Quad four = read(from + (4 * fourth + i) * SIDE + 4 * (lane_group() ^ 2 * fourth));
#pragma unroll
            for (int q = 0; q < 4; ++q) strip[q][i] = four.at[q];
        }
    }
};

// This thread's pieces of the SLICES chunks from `chunk` on, of WIDE (1, 2 or 4) strips beside one another from line
// `first` on. What `piece` adds last is constant, so that it costs nothing.
template <int WIDE, int SLICES, bool ALL, typename Operand>
__device__ inline void copy_strips(int thread, float* strips, const Operand& operand, int first, int chunk,
                                   int chunks) {
    constexpr int SIDES = WIDE < TEAMS ? WIDE : TEAMS, AT_ONCE = TEAMS / SIDES, TURNS = WIDE / SIDES;
    const int lane = thread % 32, fourth = thread / 32 % 4, team = thread / 128;
    const int slice = team / SIDES, side = team % SIDES;
    strips += (slice * WIDE + side) * STRIP + Operand::place(fourth, lane);
#pragma unroll
    for (int i = 0; i < WIDE * SLICES / TEAMS; ++i) {
        const int more_slices = i / TURNS * AT_ONCE, more_sides = i % TURNS * SIDES;
        if (ALL || chunk + slice + more_slices < chunks)
            copy16(strips + (more_slices * WIDE + more_sides) * STRIP,
                   operand.piece(first + side * SIDE, (chunk + slice) * CHUNK, fourth, lane, more_sides * SIDE,
                                 more_slices * CHUNK));
    }
}

using Sums = float[2][4][4];

// sums += A B over the 16 k of a chunk. The tensor cores round toward zero, which adds up over many sums: with PRODUCTS 3
// those of a chunk begin at zero, all small terms go first, and an ordinary addition adds them.
__device__ inline void multiply(Sums& sums, const Registers& a, const Registers& b) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        auto for_each = [&](auto add) {
#pragma unroll
            for (int k = 0; k < 4; k += 2) {
                const Split left[4] = {Split(a[2 * i][k]), Split(a[2 * i + 1][k]), Split(a[2 * i][k + 1]),
                                       Split(a[2 * i + 1][k + 1])};
#pragma unroll
                for (int j = 0; j < 4; ++j) add(j, left, {Split(b[j][k]), Split(b[j][k + 1])});
            }
        };
        using Left = const Split (&)[4];
        using Right = const Split (&)[2];
        if constexpr (PRODUCTS == 3) {
            float fresh[4][4] = {};
            for_each([&](int j, Left left, Right right) { add_small(fresh[j], left, right); });
            for_each([&](int j, Left left, Right right) { add_large(fresh[j], left, right); });
#pragma unroll
            for (int n = 0; n < 16; ++n) sums[i][n / 4][n % 4] += fresh[n / 4][n % 4];
        } else {
            for_each([&](int j, Left left, Right right) { add_large(sums[i][j], left, right); });
        }
    }
}

// The lane's quad of sums number u, and where in the tile it lies.
constexpr int QUADS = 8;
__device__ inline Quad quad_of(const Sums& sums, int u) {
    const int i = u / 4, v = u % 4;
    return {sums[i][0][v], sums[i][1][v], sums[i][2][v], sums[i][3][v]};
}
__device__ inline int quad_row(int thread, int u) { return 4 * (thread % 32 / 4) + 2 * (u / 4) + u % 4 / 2; }
__device__ inline int quad_column(int thread, int u) { return 8 * (thread % 4) + 4 * (u % 2); }
