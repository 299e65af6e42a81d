// What the weight warps do: of each layer's gradient, a product over the rows of the tile, each warp has some pieces of
// TALL x WIDE numbers, and sums them up in registers from tile to tile.

// Widths that need no padding leave nothing to check.
template <int LEVEL>
__device__ inline bool within(unsigned column) {
    return WIDTH[LEVEL] % 16 == 0 || column < unsigned(WIDTH[LEVEL]);
}

template <int L>
struct WeightGradient {
    static constexpr int M = 16 * blocks(L), N = 16 * blocks(L + 1);
    // Large pieces need fewer loads; smaller ones let more warps work.
    static constexpr bool enough(int tall, int wide) {
        return M % tall == 0 && N % wide == 0 && (M / tall) * (N / wide) > WEIGHT_WARPS / 2;
    }
    static constexpr int WIDE = enough(32, 32) ? 32 : enough(16, 16) ? 16 : 8, TALL = enough(32, WIDE) ? 32 : 16;
    static constexpr int PIECES = (M / TALL) * (N / WIDE), ROUNDS = (PIECES + WEIGHT_WARPS - 1) / WEIGHT_WARPS;
    // So many threads share a column of the bias: a power of two.
    static constexpr int bias_parts(int most) { return most < 2 ? 1 : 2 * bias_parts(most / 2); }
    static constexpr int BIAS_PARTS = bias_parts(WEIGHT_THREADS / N);

    float sums[ROUNDS][TALL / 16][WIDE / 8][4] = {};
    float bias_sum = 0.0f;
    WeightGradient<L + 1> after;

    __device__ static unsigned thread() { return threadIdx.x - ROW_THREADS; }
    __device__ static unsigned piece(unsigned round) { return thread() / 32 + round * WEIGHT_WARPS; }
    __device__ static bool mine(unsigned round) { return PIECES % WEIGHT_WARPS == 0 || piece(round) < PIECES; }
    __device__ static unsigned first_row(unsigned round) { return piece(round) / (N / WIDE) * TALL; }
    __device__ static unsigned first_column(unsigned round) { return piece(round) % (N / WIDE) * WIDE; }

    __device__ void add(const float* shared) {
        after.add(shared);
        wait<DELTAS_THERE>();
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round)
            if (mine(round)) add_piece(shared, sums[round], first_row(round), first_column(round));
        if constexpr (BIAS[L] == 1) add_bias(shared + level_at(L + 1));
        arrive<VALUES_USED>();
    }

    __device__ static void add_piece(const float* shared, float (&c)[TALL / 16][WIDE / 8][4], unsigned m, unsigned n) {
        const float* value = shared + level_at(L) + m / 16 * BLOCK;
        const float* delta = shared + level_at(L + 1) + n / 16 * BLOCK + n % 16 / 8 * 2;
#pragma unroll WEIGHT_STEPS_OUT
        for (int block = 0; block < TILE / 16; ++block)
#pragma unroll
            for (int below = 0; below < 8; below += 4) {
                const unsigned at = quad_place(fourth() + below, group());
                Split a[TALL / 16][4], b[WIDE / 8][2];
#pragma unroll
                for (int i = 0; i < TALL / 16; ++i) {
                    const Quad v = quad_at(value + (block * blocks(L) + i) * BLOCK + at);
#pragma unroll
                    for (int k = 0; k < 4; ++k) a[i][k] = Split(v.at[k]);
                }
#pragma unroll
                for (int j = 0; j < WIDE / 8; j += 2) {
                    const float* place = delta + (block * blocks(L + 1) + j / 2) * BLOCK + at;
                    if constexpr (WIDE == 8) {
                        const Pair d = pair_at(place);
                        b[0][0] = Split(d.at[0]), b[0][1] = Split(d.at[1]);
                    } else {
                        const Quad d = quad_at(place);
                        b[j][0] = Split(d.at[0]), b[j][1] = Split(d.at[1]);
                        b[j + 1][0] = Split(d.at[2]), b[j + 1][1] = Split(d.at[3]);
                    }
                }
#pragma unroll
                for (int i = 0; i < TALL / 16; ++i)
#pragma unroll
                    for (int j = 0; j < WIDE / 8; ++j) add_product(c[i][j], a[i], b[j]);
            }
    }

    __device__ void add_bias(const float* delta) {
        const unsigned column = thread() % N, part = thread() / N;
        if (part >= BIAS_PARTS) return;
#pragma unroll
        for (int k = 0; k < TILE / 2 / BIAS_PARTS; ++k) {
            const unsigned pair = part + k * BIAS_PARTS;  // of rows, 8 apart
            const unsigned block = pair / 8 * blocks(L + 1) + column / 16;
            const Pair d = pair_at(delta + block * BLOCK + delta_place(pair % 8, column));
            bias_sum += from_word(d.at[0]) + from_word(d.at[1]);
        }
    }

    // Into the order of `begin`, but for the biases: their parts go behind all sums.
    __device__ void store(float* all) {
        after.store(all);
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round)
#pragma unroll
            for (int i = 0; i < TALL / 16; ++i)
#pragma unroll
                for (int j = 0; j < WIDE / 8; ++j)
#pragma unroll
                    for (int k = 0; k < 4; ++k) {
                        const unsigned m = first_row(round) + 16 * i + group() + k / 2 * 8;
                        const unsigned n = first_column(round) + 8 * j + 2 * fourth() + k % 2;
                        if (mine(round) && within<L>(m) && within<L + 1>(n))
                            all[begin(L) + m * WIDTH[L + 1] + n] = sums[round][i][j][k];
                    }
        all[SUMS + L * WEIGHT_THREADS + thread()] = bias_sum;
    }
    __device__ void store_biases(float* all) {
        after.store_biases(all);
        if (BIAS[L] == 0 || thread() >= unsigned(WIDTH[L + 1])) return;
        float sum = 0.0f;
        for (int part = 0; part < BIAS_PARTS; ++part) sum += all[SUMS + L * WEIGHT_THREADS + part * N + thread()];
        all[begin(L) + WIDTH[L] * WIDTH[L + 1] + thread()] = sum;
    }
};

template <>
struct WeightGradient<LAYERS> {
    __device__ void add(const float*) {}
    __device__ void store(float*) {}
    __device__ void store_biases(float*) {}
};
