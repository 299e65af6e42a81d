// Training as one kernel, for small batches and larger networks: the weights are dealt out over the blocks of the
// cluster and stay in their shared memory. A block works out its own units of every level and mails them to the others.
//
// Level 0 is the input, level l the output of layer l - 1. A block owns OWN units of every level between the first and
// the last; all blocks work out the last level, alike. Of a layer's weights a block keeps those into its units
// ("columns", a line for each unit) and, for the way back, those out of its units ("lines", likewise): most weights
// are held twice, by different blocks, and both copies are updated by the same sums.
// Values and deltas are row-major. The bias is the weight of one more unit of the level, which is always 1.
//
// Constants beside those of network.cuh: X_SHARED, 1 where the step's input fits into shared memory, else it is read
// from the L2 cache; SHARED_BYTES.

// ---- One step.

struct Step {
    Block& block;
    const float* x;  // (rows + 1, value_stride(0)) in device memory: ones behind the inputs, a row of zeros at the end
    int rank;
    Optimizer optimizer;

    template <int L>
    __device__ const float* values(int row) const {
        if constexpr (L == 0 && !X_SHARED) return x + size_t(block.rows[row]) * value_stride(0);
        else return block.memory + begin(VALUES, L) + row * value_stride(L);
    }
    template <int L>
    __device__ float* deltas(int row) const { return block.memory + begin(DELTAS, L) + row * delta_stride(L); }
    template <int L>
    __device__ float* slopes(int row) const { return block.memory + begin(SLOPES, L) + row * own(L); }
    template <int L>
    __device__ float* mine(int row) const {  // deltas of the block's own units of level L; of the last level, all
        if constexpr (L == LAYERS) return deltas<L>(row);
        else return block.memory + begin(MINE, L) + row * own(L);
    }

    template <int L>
    __device__ void forward() {
        constexpr int UNITS = own(L + 1);
        product<UNITS, WIDTH[L] + BIAS[L], value_stride(L)>(
            block, block.memory + begin(COLUMNS, L), [&](int row) { return values<L>(row); });
        for_each_sum<UNITS>(block, [&](int row, int unit, float z, int part, int parts) {
            float a, slope;
            activate<L>(z, a, slope);
            if constexpr (L == LAST) {
                if (part > 0) return;
                float term, gradient;
                lose(a, block.targets[row * UNITS + unit], term, gradient);
                bool real = row < ROWS && unit < OUTPUTS;
                block.terms[row * UNITS + unit] = real ? term : 0.0f;
                deltas<LAYERS>(row)[unit] = real ? gradient * slope : 0.0f;
            } else {
                const int place = rank * UNITS + unit;
                const bool real = place < WIDTH[L + 1];
                if (part == 0) slopes<L + 1>(row)[unit] = real ? slope : 0.0f;
                float* value = block.memory + begin(VALUES, L + 1) + row * value_stride(L + 1) + place;
                for (int other = part; real && other < CLUSTER; other += parts) mail(value, other, a);
            }
        });
        if constexpr (L == LAST) {
            __syncthreads();
        } else {
            cluster_barrier();
            forward<L + 1>();
        }
    }

    // The deltas of level L, back through layer L; then the updates that wait for nothing else. (A block's units past
    // the end of a level have slope 0, so it does not matter which values stand in for theirs.) All that reads level 1
    // comes before the last barrier of the step, since the next step writes there before it meets a barrier.
    template <int L>
    __device__ void backward() {
        constexpr int UNITS = own(L);
        product<UNITS, WIDTH[L + 1], delta_stride(L + 1)>(
            block, block.memory + begin(LINES, L), [&](int row) { return deltas<L + 1>(row); });
        for_each_sum<UNITS>(block, [&](int row, int unit, float sum, int part, int parts) {
            float delta = sum * slopes<L>(row)[unit];
            if (part == 0) mine<L>(row)[unit] = delta;
            if constexpr (L > 1) {
                const int place = rank * UNITS + unit;
                for (int other = part; place < WIDTH[L] && other < CLUSTER; other += parts)
                    mail(deltas<L>(row) + place, other, delta);
            }
        });
        __syncthreads();
        int start = 0;
        if constexpr (L == LAST) start = update_columns<L>(start);
        start = update_lines<UNITS, WIDTH[L + 1], delta_stride(L + 1)>(
            block, begin(LINES, L),
            [&](int row, int unit) { return values<L>(row) + min(rank * UNITS + unit, value_stride(L) - 4); },
            [&](int row) { return deltas<L + 1>(row); }, optimizer, start);
        update_columns<L - 1>(start);
        if constexpr (L > 1 || LAST == 1) cluster_barrier();
        if constexpr (L > 1) backward<L - 1>();
    }

    template <int L>
    __device__ int update_columns(int start) {
        return update_lines<own(L + 1), WIDTH[L] + BIAS[L], value_stride(L)>(
            block, begin(COLUMNS, L), [&](int row, int unit) { return mine<L + 1>(row) + unit; },
            [&](int row) { return values<L>(row); }, optimizer, start);
    }

    // The last warp of block 0 adds up the loss.
    __device__ void add_loss(float* loss) const {
        if (rank > 0 || threadIdx.x < THREADS - 32) return;
        float sum = 0.0f;
        for (int i = threadIdx.x % 32; i < TALL * own(LAYERS); i += 32) sum += block.terms[i];
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0) *loss = sum * SHARE;
    }
};

// ---- Between launches.

__host__ __device__ constexpr int tensor(int layer) {  // number of the layer's weight among the model's tensors
    int at = 0;
    for (int l = 0; l < layer; ++l) at += 1 + BIAS[l];
    return at;
}

// Read (or write back) layer L and those after it. arrays: for each tensor of the model, its address and those of its
// memories. memories: the block's own, placed as the weights are.
template <bool WRITE, int L>
__device__ void exchange(Block& block, float* memories, float* const* arrays, int rank) {
    constexpr int IN = WIDTH[L], OUT = WIDTH[L + 1];
    auto move = [&](int at, int which, int place) {
        for (int k = 0; k < ARRAYS; ++k) {
            float& here = k ? memories[(k - 1) * WEIGHTS + at] : block.memory[at];
            float& there = arrays[which * ARRAYS + k][place];
            if constexpr (WRITE) there = here;
            else here = there;
        }
    };
    constexpr int UNITS = own(L + 1), LENGTH = IN + BIAS[L];
    const int first = L == LAST ? 0 : rank * UNITS;
    for (int i = threadIdx.x; i < UNITS * LENGTH && !(WRITE && L == LAST && rank > 0); i += THREADS) {
        int unit = first + i % UNITS, k = i / UNITS, at = begin(COLUMNS, L) + i % UNITS * value_stride(L) + k;
        if (unit < OUT) move(at, tensor(L) + (k == IN), k == IN ? unit : k * OUT + unit);
    }
    if constexpr (L > 0 && !WRITE)
        for (int i = threadIdx.x; i < own(L) * OUT; i += THREADS) {
            int unit = rank * own(L) + i / OUT, k = i % OUT;
            if (unit < IN) move(begin(LINES, L) + i / OUT * delta_stride(L + 1) + k, tensor(L), unit * OUT + k);
        }
    if constexpr (L < LAST) exchange<WRITE, L + 1>(block, memories, arrays, rank);
}

template <int L>
__device__ void set_ones(Block& block) {
    if constexpr (BIAS[L])
        for (int row = threadIdx.x; row < TALL; row += THREADS)
            block.memory[begin(VALUES, L) + row * value_stride(L) + WIDTH[L]] = 1.0f;
    if constexpr (L < LAST) set_ones<L + 1>(block);
}

// Which rows this step takes, their targets and, where it fits, their input.
__device__ inline void load(Block& block, const float* x, const float* y, const int* batch, int all_rows) {
    for (int row = threadIdx.x; row < TALL; row += THREADS)
        block.rows[row] = row >= ROWS ? all_rows : BATCHED ? batch[row] : row;
    __syncthreads();
    constexpr int WIDE = own(LAYERS);
    for (int i = threadIdx.x; i < ROWS * WIDE; i += THREADS)
        if (i % WIDE < OUTPUTS) block.targets[i] = y[block.rows[i / WIDE] * OUTPUTS + i % WIDE];
    if constexpr (X_SHARED)
        for (int i = threadIdx.x; i < TALL * value_stride(0); i += THREADS) {
            const int from = block.rows[i / value_stride(0)] * value_stride(0);
            block.memory[begin(VALUES, 0) + i] = x[from + i % value_stride(0)];
        }
    __syncthreads();
}

// `steps` training steps. x: see Step. batches: the row numbers of every step, one after another (BATCHED). factors:
// FACTORS numbers a step. losses: each step's loss, before its update. memories: room for MEMORIES times WEIGHTS floats
// a block.
extern "C" __global__ void IN_CLUSTER __launch_bounds__(THREADS, 1)
loop_weights(float* const* arrays, float* memories, const float* x, const float* y, int all_rows, const int* batches,
             const float* factors, float* losses, int steps) {
    SHARED_MEMORY(shared);
    Block& block = *reinterpret_cast<Block*>(shared);
    const int rank = blockIdx.x;
    memories += size_t(rank) * MEMORIES * WEIGHTS;

    for (int i = threadIdx.x; i < BUFFERS; i += THREADS) block.memory[i] = 0.0f;
    for (int i = threadIdx.x; i < MEMORIES * WEIGHTS; i += THREADS) memories[i] = 0.0f;
    for (int i = threadIdx.x; i < TALL * own(LAYERS); i += THREADS) block.targets[i] = 0.0f;
    __syncthreads();
    exchange<false, 0>(block, memories, arrays, rank);
    set_ones<1>(block);
    if constexpr (!BATCHED) load(block, x, y, batches, all_rows);
    cluster_barrier();  // nobody mails before all are there

    for (int step = 0; step < steps; ++step) {
        if constexpr (BATCHED) load(block, x, y, batches + step * ROWS, all_rows);
        Step now{block, x, rank, {{}, memories}};
        for (int k = 0; k < FACTORS; ++k) now.optimizer.factor[k] = factors[step * FACTORS + k];
        now.forward<0>();
        now.add_loss(losses + step);
        now.backward<LAST>();
        __syncthreads();
    }
    exchange<true, 0>(block, memories, arrays, rank);
}
