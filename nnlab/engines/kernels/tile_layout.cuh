// How tile.cu shares its work among warps, and lays out its numbers in shared memory.
//
// The first ROW_WARPS of a block each take 16 rows of a tile through the network and back; what a lane reads there is
// what it wrote itself, so these warps never wait for each other. The other WEIGHT_WARPS follow on the way back and sum
// up the gradients of the weights, which need all rows; they keep them in registers.

constexpr int TILE = 64;  // rows
constexpr int ROW_WARPS = TILE / 16, WEIGHT_WARPS = THREADS / 32 - ROW_WARPS;
constexpr int STEPS_OUT = STEPS, WEIGHT_STEPS_OUT = WEIGHT_STEPS;  // written out by the compiler
constexpr int ROW_THREADS = 32 * ROW_WARPS, WEIGHT_THREADS = 32 * WEIGHT_WARPS;

// The level in front of layer L is L. Levels and weights are padded with zeros to blocks of 16 x 16. The four numbers
// 8 apart, (row, column) to (row + 8, column + 8), stand together as one Quad: what mma.sync wants of a lane.
__host__ __device__ constexpr int blocks(int level) { return rounded_up(WIDTH[level], 16) / 16; }
constexpr int BLOCK = 256;  // numbers
__host__ __device__ constexpr int level_at(int level) {
    int at = 0;
    for (int l = 0; l < level; ++l) at += TILE / 16 * blocks(l) * BLOCK;
    return at;
}
__host__ __device__ constexpr int weights_at(int layer) {
    int at = level_at(LAYERS + 1);
    for (int l = 0; l < layer; ++l) at += blocks(l) * blocks(l + 1) * BLOCK;
    return at;
}
__host__ __device__ constexpr int bias_at(int layer) {
    int at = weights_at(LAYERS);
    for (int l = 0; l < layer; ++l) at += 16 * blocks(l + 1);
    return at;
}
constexpr int IMAGE_AT = weights_at(0), IMAGE = bias_at(LAYERS) - IMAGE_AT;  // weights and biases
constexpr int SHARED_FLOATS = IMAGE_AT + IMAGE;
static_assert(4 * SHARED_FLOATS == SHARED_BYTES, "fused_tile.py counts the same bytes");
static_assert(LAYERS > 1, "a level between the ends is what deltas are written to");

// Where layer's gradients lie among a block's: those of its weight, then those of its bias; the loss comes last.
__host__ __device__ constexpr int begin(int layer) {
    int at = 0;
    for (int l = 0; l < layer; ++l) at += (WIDTH[l] + BIAS[l]) * WIDTH[l + 1];
    return at;
}
constexpr int PARAMETERS = begin(LAYERS), SUMS = rounded_up(PARAMETERS + 1, 4);

// Where the Quad of (row, column), both below 8, stands in its block: rows of eight Quads, which take all banks of
// shared memory, are shuffled such that a warp meets each bank once whether a lane's row goes by its group and its
// column by its fourth, or the other way round.
__device__ inline unsigned quad_place(unsigned row, unsigned column) {
    return 4 * (8 * row + (column ^ row % 2 ^ 2 * (row % 4 ^ row / 4)));
}
// The order within a Quad is the one in which the product that uses it most takes it. Values are the left side of a
// weight's gradient; deltas (dLoss/dz) its right side, and the left side of their own product; weights a right side.
__device__ inline unsigned value_place(unsigned row, unsigned column) {
    return quad_place(row % 8, column % 8) + row / 8 % 2 * 2 + column / 8 % 2;
}
__device__ inline unsigned delta_place(unsigned row, unsigned column) {
    return quad_place(row % 8, column % 8) + row / 8 % 2 + column / 8 % 2 * 2;
}

// The lanes of a warp as mma.sync deals out its pieces: eight groups of four.
__device__ inline unsigned warp() { return threadIdx.x / 32u; }
__device__ inline unsigned lane() { return threadIdx.x % 32u; }
__device__ inline unsigned group() { return lane() / 4; }
__device__ inline unsigned fourth() { return lane() % 4; }

struct alignas(8) Pair { float at[2]; };
__device__ inline Pair pair_at(const float* place) { return *reinterpret_cast<const Pair*>(place); }
__device__ inline Quad quad_at(const float* place) { return *reinterpret_cast<const Quad*>(place); }
__device__ inline void put(float* place, Quad quad) { *reinterpret_cast<Quad*>(place) = quad; }

// Barriers of some of the block's warps (0 is __syncthreads). `arrive` goes on at once; `wait` also sees what those who
// have arrived wrote before.
enum { DELTAS_THERE = 1, VALUES_USED, AMONG_ROWS, AMONG_WEIGHTS };
__host__ __device__ constexpr int members(int barrier) {
    return barrier == AMONG_ROWS ? ROW_THREADS : barrier == AMONG_WEIGHTS ? WEIGHT_THREADS : THREADS;
}
#ifndef ON_HOST
template <int BARRIER>
__device__ inline void wait() {
    asm volatile("bar.sync %0, %1;" ::"n"(BARRIER), "n"(members(BARRIER)) : "memory");
}
template <int BARRIER>
__device__ inline void arrive() {
    asm volatile("bar.arrive %0, %1;" ::"n"(BARRIER), "n"(members(BARRIER)) : "memory");
}
#endif
