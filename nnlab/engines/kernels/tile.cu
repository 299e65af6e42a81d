// Training a network up to 128 wide on many rows, such as the pixels of a picture, on the whole card: one launch takes
// as many steps as it is given.
//
// In a step every block copies all weights into shared memory, and takes its tiles of rows through forward, loss and
// backward without going back to the card's memory. The gradients of the weights stay in registers until the block's
// last tile. Then the blocks wait for one another, each adds up a share of the gradients, in order, and takes the
// optimiser's step for it.
//
// Besides network.cuh's constants it needs PRODUCTS (mma.cuh), BLOCKS, and how much of a product the compiler writes
// out: STEPS and WEIGHT_STEPS of 16 terms of a sum, GROUP blocks of 16 columns.

// A row warp's share of one end of the network (level 0 or the last) on its way into shared memory, fetched a tile ahead.
template <int LEVEL>
struct EndRows {
    static constexpr int ACROSS = 16 * blocks(LEVEL), COUNT = 16 * ACROSS / 32;
    float v[COUNT];

    __device__ static unsigned row(unsigned i) { return (i * 32 + lane()) / ACROSS; }
    __device__ static unsigned column(unsigned i) { return (i * 32 + lane()) % ACROSS; }
    __device__ void fetch(const float* from, const int* batch, int first) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int at = first + int(16 * warp() + row(i));
            const bool real = at < ROWS && column(i) < unsigned(WIDTH[LEVEL]);
            const long long line = real && BATCHED ? batch[at] : at;
            v[i] = real ? from[line * WIDTH[LEVEL] + column(i)] : 0.0f;
        }
    }
    __device__ void put_down(float* shared) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            float* block = my_rows<LEVEL>(shared, column(i) / 16);
            if (LEVEL == 0) block[value_place(row(i), column(i))] = to_word(v[i]);
            else block[delta_place(row(i), column(i))] = v[i];
        }
    }
};

// A step's tiles as a row warp sees them.
__device__ inline void row_warp(float* shared, const float* x, const float* y, const int* batch) {
    float loss = 0.0f;
    EndRows<0> inputs;
    EndRows<LAYERS> targets;
    inputs.fetch(x, batch, blockIdx.x * TILE);
    targets.fetch(y, batch, blockIdx.x * TILE);
    for (int first = blockIdx.x * TILE; first < ROWS; first += BLOCKS * TILE) {
        inputs.put_down(shared);
        targets.put_down(shared);
        __syncwarp();
        inputs.fetch(x, batch, first + BLOCKS * TILE);
        targets.fetch(y, batch, first + BLOCKS * TILE);
        forward<0>(shared);
        loss += finish(shared, ROWS - first);
        backward<LAST>(shared);
        wait<VALUES_USED>();
    }
    __syncthreads();
    loss = warp_sum(loss);
    float* warps = shared + SUMS + LAYERS * WEIGHT_THREADS;
    if (lane() == 0) warps[warp()] = loss;
    wait<AMONG_ROWS>();
    if (threadIdx.x > 0) return;
    for (int other = 1; other < ROW_WARPS; ++other) loss += warps[other];
    shared[PARAMETERS] = loss * SHARE;
}

// The same for a weight warp.
__device__ inline void weight_warp(float* shared) {
    WeightGradient<0> gradient;
    for (int first = blockIdx.x * TILE; first < ROWS; first += BLOCKS * TILE) gradient.add(shared);
    __syncthreads();
    gradient.store(shared);
    wait<AMONG_WEIGHTS>();
    gradient.store_biases(shared);
}

// workspace: WORKSPACE floats, zeros at first. counts: of the barrier, now and at the launch. batches: for each step the
// numbers of its rows (BATCHED). factors: FACTORS numbers for each step.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
tile(float* const* arrays, float* workspace, unsigned* counts, const float* x, const float* y, const int* batches,
     const float* factors, float* losses, int steps) {
    SHARED_MEMORY(memory);
    float* shared = reinterpret_cast<float*>(memory);
    float* image = workspace + BLOCKS * SUMS;
    GridBarrier everyone{counts, counts[1]};
    show_share(arrays, image);
    for (int step = 0; step < steps; ++step) {
        everyone.wait();
        for (int i = 4 * threadIdx.x; i < IMAGE; i += 4 * THREADS) copy16(shared + IMAGE_AT + i, image + i);
        end_of_group();
        await_groups<0>();
        __syncthreads();
        if (threadIdx.x < ROW_THREADS) row_warp(shared, x, y, batches + (BATCHED ? size_t(step) * ROWS : 0));
        else weight_warp(shared);
        __syncthreads();
        for (int i = 4 * threadIdx.x; i < SUMS; i += 4 * THREADS)
            put(workspace + blockIdx.x * SUMS + i, quad_at(shared + i));
        everyone.wait();
        update_share(shared, arrays, image, workspace, factors + step * FACTORS, losses + step);
    }
    everyone.wait();
    if (blockIdx.x == 0 && threadIdx.x == 0) counts[1] = everyone.target;
}
