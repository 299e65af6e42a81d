// Training as one kernel, for small networks: every block of the cluster has the whole network and takes its share of
// the rows. Once a step the blocks add up their gradients; then each makes the same update, so all stay equal.
//
// Sums have a fixed order, so the same card gives the same bits, however the steps are cut into launches.
// In shared memory a unit's values over the rows of a tile lie side by side: value[unit * STRIDE + row]. The bias is
// the weight of one more unit, which is always 1.
//
// Constants beside those of network.cuh: TILE, rows a block takes through the network at once, a multiple of 4;
// SHARED_BYTES.

constexpr int BLOCK_ROWS = (ROWS + CLUSTER - 1) / CLUSTER;
constexpr int TILES = (BLOCK_ROWS + TILE - 1) / TILE;
constexpr int QUADS = TILE / 4;         // a thread works on four rows at a time
constexpr int STRIDE = odd_quads(TILE);
constexpr bool X_STAYS = TILES == 1 && !BATCHED;  // the block's rows never change: loaded once

// Where layer L's weights (inputs, outputs) and bias begin in the list of all parameters; LAYERS gives the length.
__host__ __device__ constexpr int begin(int layer) {
    int at = 0;
    for (int l = 0; l < layer; ++l) at += (WIDTH[l] + BIAS[l]) * WIDTH[l + 1];
    return at;
}
constexpr int PARAMETERS = begin(LAYERS);
constexpr int SUMS = PARAMETERS + 1;    // what a step adds up over the rows: every gradient, and the loss

// Where the values of level l begin: level 0 is the input, level l the output of layer l - 1; one more unit holds ones.
__host__ __device__ constexpr int level(int l) {
    int at = 0;
    for (int k = 0; k < l; ++k) at += (WIDTH[k] + 1) * STRIDE;
    return at;
}

struct Block {
    float weights[PARAMETERS];
    float memories[MEMORIES ? MEMORIES : 1][MEMORIES ? PARAMETERS : 1];
    // Letters from every block. Two sets in turn: this step's may be written while the last one's are still being read.
    float letters[2][CLUSTER][SUMS];
    float sums[TILES > 1 ? SUMS : 1];   // of the tiles so far
    alignas(16) float values[level(LAYERS)];
    alignas(16) float deltas[level(LAYERS + 1)];  // dLoss/dz, unit by unit as `values`; before that, the slope f'(z)
    alignas(16) float targets[OUTPUTS * STRIDE];
    alignas(16) float terms[OUTPUTS * STRIDE];    // of the loss
};

static_assert(sizeof(Block) <= SHARED_BYTES, "the plan asked for too little shared memory");

// How many threads share one quad of results: more where there are few results and long sums; a power of 2 in a warp.
__host__ __device__ constexpr int sharers(int results, int length) {
    int lanes = 1;
    while (lanes < 32 && 2 * lanes * results <= THREADS && 4 * lanes <= length) lanes *= 2;
    return lanes;
}

// Sum of weight(k) * value(k) over k < LENGTH for four rows, shared by LANES neighbouring threads.
template <int LENGTH, int LANES>
__device__ inline Quad product(const float* weights, int weight_stride, const float* values) {
    Quad sum = {};
#pragma unroll 8
    for (int k = threadIdx.x % LANES; k < LENGTH; k += LANES) {
        float w = weights[k * weight_stride];
        Quad v = *reinterpret_cast<const Quad*>(values + k * STRIDE);
        for (int r = 0; r < 4; ++r) sum.at[r] += w * v.at[r];
    }
    for (int offset = LANES / 2; offset > 0; offset /= 2)
        for (int r = 0; r < 4; ++r) sum.at[r] += __shfl_xor_sync(0xffffffffu, sum.at[r], offset);
    return sum;
}

// Calls work(unit, quad, first) for UNITS x QUADS results, LANES threads for each; first: this thread may write it.
// Every thread makes the same number of calls, as the sums over lanes need them all.
template <int UNITS, int LANES, typename Work>
__device__ inline void for_each_result(Work work) {
    constexpr int RESULTS = UNITS * QUADS;
    for (int start = 0; start < RESULTS * LANES; start += THREADS) {
        int result = (start + int(threadIdx.x)) / LANES;
        bool first = result < RESULTS && threadIdx.x % LANES == 0;
        result = min(result, RESULTS - 1);
        work(result / QUADS, result % QUADS, first);
    }
}

template <int L>
__device__ void forward(Block& block, int rows) {
    constexpr int OUT = WIDTH[L + 1], LENGTH = WIDTH[L] + BIAS[L], LANES = sharers(OUT * QUADS, LENGTH);
    for_each_result<OUT, LANES>([&](int unit, int quad, bool first) {
        const float* weights = block.weights + begin(L) + unit;
        Quad z = product<LENGTH, LANES>(weights, OUT, block.values + level(L) + 4 * quad);
        if (!first) return;
        int place = unit * STRIDE + 4 * quad;
        Quad a, d;
        for (int r = 0; r < 4; ++r) activate<L>(z.at[r], a.at[r], d.at[r]);
        if constexpr (L == LAST) {
            Quad t = *reinterpret_cast<Quad*>(block.targets + place), term;
            for (int r = 0; r < 4; ++r) {
                float gradient;
                lose(a.at[r], t.at[r], term.at[r], gradient);
                bool real = 4 * quad + r < rows;  // the last tile is filled up with rows that count for nothing
                term.at[r] = real ? term.at[r] : 0.0f;
                d.at[r] = real ? d.at[r] * gradient : 0.0f;
            }
            *reinterpret_cast<Quad*>(block.terms + place) = term;
        } else {
            *reinterpret_cast<Quad*>(block.values + level(L + 1) + place) = a;
        }
        *reinterpret_cast<Quad*>(block.deltas + level(L + 1) + place) = d;
    });
    __syncthreads();
    if constexpr (L < LAST) forward<L + 1>(block, rows);
}

// The deltas of level L from those of the next one, back through layer L.
template <int L>
__device__ void backward(Block& block) {
    constexpr int OUT = WIDTH[L + 1], LANES = sharers(WIDTH[L] * QUADS, OUT);
    for_each_result<WIDTH[L], LANES>([&](int unit, int quad, bool first) {
        const float* weights = block.weights + begin(L) + unit * OUT;
        Quad d = product<OUT, LANES>(weights, 1, block.deltas + level(L + 1) + 4 * quad);
        if (!first) return;
        Quad* delta = reinterpret_cast<Quad*>(block.deltas + level(L) + unit * STRIDE + 4 * quad);
        for (int r = 0; r < 4; ++r) delta->at[r] *= d.at[r];
    });
    __syncthreads();
    if constexpr (L > 1) backward<L - 1>(block);
}

__device__ inline void mail_to_all(float* place, float sum) {
    for (int other = 0; other < CLUSTER; ++other) mail(place, other, sum);
}

// Gradients of layer L: sums over the rows of value * delta. Thread p % THREADS sees to parameter p, here and in the
// update, so nothing need be waited for in between.
template <int L>
__device__ void gradients(Block& block, float* letter, bool begins, bool ends) {
    constexpr int OUT = WIDTH[L + 1];
    for (int p = begin(L) + (int(threadIdx.x) + THREADS - begin(L) % THREADS) % THREADS; p < begin(L + 1);
         p += THREADS) {
        const Quad* v = reinterpret_cast<Quad*>(block.values + level(L) + (p - begin(L)) / OUT * STRIDE);
        const Quad* d = reinterpret_cast<Quad*>(block.deltas + level(L + 1) + (p - begin(L)) % OUT * STRIDE);
        Quad part = {};
#pragma unroll 8
        for (int q = 0; q < QUADS; ++q)
            for (int r = 0; r < 4; ++r) part.at[r] += v[q].at[r] * d[q].at[r];
        float sum = (part.at[0] + part.at[1]) + (part.at[2] + part.at[3]);
        if constexpr (TILES > 1) sum = block.sums[p] = begins ? sum : block.sums[p] + sum;
        if (ends) mail_to_all(letter + p, sum);
    }
    if constexpr (L < LAST) gradients<L + 1>(block, letter, begins, ends);
}

// The last warp adds up the loss.
__device__ inline void add_loss(Block& block, float* letter, bool begins, bool ends) {
    if (threadIdx.x < THREADS - 32) return;
    float sum = 0.0f;
    for (int i = threadIdx.x % 32; i < OUTPUTS * TILE; i += 32) sum += block.terms[i / TILE * STRIDE + i % TILE];
    sum = warp_sum(sum);
    if (threadIdx.x % 32) return;
    if constexpr (TILES > 1) sum = block.sums[PARAMETERS] = begins ? sum : block.sums[PARAMETERS] + sum;
    if (ends) mail_to_all(letter + PARAMETERS, sum);
}

// Bring rows first .. first + TILE - 1 of this step into shared memory; rows from `end` on are zeros.
__device__ inline void load(Block& block, const float* x, const float* y, const int* batch, int first, int end) {
    for (int i = threadIdx.x; i < TILE * (WIDTH[0] + OUTPUTS); i += THREADS) {
        int row = i / (WIDTH[0] + OUTPUTS), column = i % (WIDTH[0] + OUTPUTS);
        bool real = first + row < end;
        int from = !real ? 0 : BATCHED ? batch[first + row] : first + row;
        if (column < WIDTH[0])
            block.values[column * STRIDE + row] = real ? x[from * WIDTH[0] + column] : 0.0f;
        else
            block.targets[(column - WIDTH[0]) * STRIDE + row] = real ? y[from * OUTPUTS + column - WIDTH[0]] : 0.0f;
    }
    __syncthreads();
}

// Read (or write back) the parameters and memories. arrays: for each tensor of the model, its address and those of its
// memories; a layer's tensors are its weight and, where it has one, its bias.
template <bool WRITE>
__device__ void exchange(Block& block, float* const* arrays) {
    for (int l = 0, tensor = 0; l < LAYERS; ++l)
        for (int part = 0; part <= BIAS[l]; ++part, ++tensor) {
            int at = begin(l) + part * WIDTH[l] * WIDTH[l + 1], size = (part ? 1 : WIDTH[l]) * WIDTH[l + 1];
            for (int i = threadIdx.x; i < size; i += THREADS)
                for (int k = 0; k < ARRAYS; ++k) {
                    float& here = k ? block.memories[k - 1][at + i] : block.weights[at + i];
                    float& there = arrays[tensor * ARRAYS + k][i];
                    if constexpr (WRITE) there = here;
                    else here = there;
                }
        }
}

// `steps` training steps. batches: the row numbers of every step, one after another (BATCHED). factors: FACTORS numbers
// a step. losses: each step's loss, before its update.
extern "C" __global__ void IN_CLUSTER __launch_bounds__(THREADS, 1)
loop_rows(float* const* arrays, const float* x, const float* y, const int* batches, const float* factors,
          float* losses, int steps) {
    SHARED_MEMORY(memory);
    Block& block = *reinterpret_cast<Block*>(memory);
    const int rank = blockIdx.x, first = rank * BLOCK_ROWS, end = min(first + BLOCK_ROWS, ROWS);

    exchange<false>(block, arrays);
    for (int l = 0; l < LAYERS; ++l)
        for (int row = threadIdx.x; row < STRIDE; row += THREADS)
            block.values[level(l) + WIDTH[l] * STRIDE + row] = 1.0f;
    if constexpr (X_STAYS) load(block, x, y, batches, first, end);
    cluster_barrier();  // nobody mails before all are there

    for (int step = 0; step < steps; ++step) {
        auto& letters = block.letters[step % 2];
        float factor[FACTORS];  // asked for early: the update should not wait for device memory
        for (int k = 0; k < FACTORS; ++k) factor[k] = factors[step * FACTORS + k];
        for (int tile = 0; tile < TILES; ++tile) {
            int start = first + tile * TILE;
            if constexpr (!X_STAYS) load(block, x, y, batches + step * ROWS, start, end);
            forward<0>(block, end - start);
            if constexpr (LAYERS > 1) backward<LAST>(block);
            gradients<0>(block, letters[rank], tile == 0, tile == TILES - 1);
            add_loss(block, letters[rank], tile == 0, tile == TILES - 1);
            if constexpr (TILES > 1) __syncthreads();
        }
        cluster_barrier();

        for (int p = threadIdx.x; p < SUMS; p += THREADS) {
            float sum = 0.0f;
            for (int other = 0; other < CLUSTER; ++other) sum += letters[other][p];
            if (p < PARAMETERS) {
                float none = 0.0f;
                float& m = MEMORIES > 0 ? block.memories[0][p] : none;
                float& v = MEMORIES > 1 ? block.memories[1][p] : none;
                update(factor, sum, block.weights[p], m, v);
            } else if (rank == 0) {
                losses[step] = sum * SHARE;
            }
        }
        __syncthreads();
    }
    if (rank == 0) exchange<true>(block, arrays);
    cluster_barrier();  // a block's memory stays until its letters have arrived
}
