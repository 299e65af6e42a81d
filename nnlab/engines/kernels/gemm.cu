// Training steps of networks too wide for a block's shared memory, as a sequence of kernels over all rows: for each
// layer between the first and the last one product forward, two backward, each with what belongs to it done on the sums
// while they are in registers. first.cuh, last.cuh and update.cuh have the kernels
// around them.
//
// Level l is what lies between layer l - 1 and layer l: PADDED_ROWS x padded(l) words of activations, as many of
// dLoss/dz, and slopes where they need an array; dLoss/dz then takes their place, number by number. Padding does no harm:
// its weights are zero, and in rows past the last one dLoss/dz is zero.

// Level L + 1 from level L: z = b + a W, and the activation. turned: W the other way around, an output a line.
// A block takes tiles of rows in its columns; the first stages of the next tile arrive while it works on this one's sums.
template <int L>
__device__ void forward(const float* before, const float* turned, const float* bias, float* after, float* slopes) {
    constexpr int IN = padded(L), OUT = padded(L + 1), SIZE = tile(L + 1), K_STAGES = IN / DEPTH;
    using Work = Product<Along<ROW_TILE>, Along<SIZE>>;
    extern __shared__ __align__(16) float shared[];
    const int left = blockIdx.x * SIZE;
    Along<ROW_TILE>::Copier a(before + (long long)blockIdx.y * ROW_TILE * IN, IN);
    typename Along<SIZE>::Copier b(turned + left * IN, IN);
    int stage = 0, tile = blockIdx.y;
    auto copy = [&](float* to) {
        if (tile >= TILES) return;
        a.copy(to, IN);
        b.copy(to + Along<ROW_TILE>::FLOATS, IN);
        if (++stage < K_STAGES) return;
        stage = 0;
        tile += gridDim.y;
        a.from += (long long)gridDim.y * ROW_TILE * IN - IN;
        b.from -= IN;
    };
    Pipeline<Work::FLOATS, decltype(copy)> pipeline(shared, copy);
    Work product;
    for (int mine = blockIdx.y; mine < TILES; mine += gridDim.y) {
        product.begin_with(bias + left);
        for (int k = 0; k < K_STAGES; ++k) product.add(pipeline.take());
        const long long corner = (long long)mine * ROW_TILE * OUT + left;
        product.for_each_pair([&](int row, int column, const float* z) {
            keep_all<L>(after + corner, slopes + corner, row * OUT + column, Pair{z[0], z[1]});
        });
    }
}

// The words (or slopes) under a tile's sums, brought by the same pipeline in two stages: each has the first or the
// second half of every warp's 64 rows, in strips of 32 columns.
template <int SIZE>
struct Under {
    static constexpr int LINES = ROW_TILE / 2;
    __device__ static void copy(float* to, const float* corner, int length, int half) {
        const int vector = threadIdx.x % 8;
#pragma unroll
        for (int i = 0; i < LINES; i += PRODUCT_THREADS / 8) {
            const int line = i + threadIdx.x / 8, row = line % 32 + 32 * half + line / 32 * 64;
#pragma unroll
            for (int strip = 0; strip < SIZE / DEPTH; ++strip)
                copy16(to + strip * LINES * DEPTH + Along<LINES>::at(line, vector),
                       corner + row * length + strip * DEPTH + 4 * vector);
        }
    }
    __device__ static Pair read(const float* from, int row, int column) {
        const int line = row % 32 + row / 64 * 32;
        from += column / DEPTH * LINES * DEPTH;
        return pair(from + Along<LINES>::at(line, column % DEPTH / 4) + column % 4);
    }
};

// dLoss/dz of layer L - 1 from that of layer L: (dz W^T) times the slope. under: where the slope is told, the words of
// level L or the slopes; `before` may be the same array.
template <int L>
__device__ void backward(const float* after, const float* weight, const float* under, float* before, const float* x,
                         const int* batch, float* sums) {
    constexpr int IN = padded(L), OUT = padded(L + 1), SIZE = tile(L), K_STAGES = OUT / DEPTH;
    constexpr bool LAST_STOP = L == 1 && FEW_INPUTS;
    using Work = Product<Along<ROW_TILE>, Along<SIZE>>;
    extern __shared__ __align__(16) float shared[];
    const int left = blockIdx.x * SIZE;
    Along<ROW_TILE>::Copier a(after + (long long)blockIdx.y * ROW_TILE * OUT, OUT);
    typename Along<SIZE>::Copier b(weight + left * OUT, OUT);
    int stage = 0, tile = blockIdx.y;
    auto copy = [&](float* to) {
        if (tile >= TILES) return;
        if (stage < K_STAGES) {
            a.copy(to, OUT);
            b.copy(to + Along<ROW_TILE>::FLOATS, OUT);
        } else {
            Under<SIZE>::copy(to, under + (long long)tile * ROW_TILE * IN + left, IN, stage - K_STAGES);
        }
        if (++stage < K_STAGES + 2) return;
        stage = 0;
        tile += gridDim.y;
        a.from += (long long)gridDim.y * ROW_TILE * OUT - OUT;
        b.from -= OUT;
    };
    Pipeline<Work::FLOATS, decltype(copy)> pipeline(shared, copy);
    Work product;
    InputSums<Work> inputs(shared + (LAST_STOP ? STAGES * Work::FLOATS : 0), LAST_STOP);
    for (int mine = blockIdx.y; mine < TILES; mine += gridDim.y) {
        product.clear();
        for (int k = 0; k < K_STAGES; ++k) product.add(pipeline.take());
        float* corner = before + (long long)mine * ROW_TILE * IN + left;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float* arrived = pipeline.take();
            product.for_each_pair([&](int row, int column, float* gradient) {
                const Pair was = Under<SIZE>::read(arrived, row, column);
#pragma unroll
                for (int i = 0; i < 2; ++i) gradient[i] *= kept_slope<L - 1>(was.at[i]);
                if (!LAST_STOP) put(corner + row * IN + column, Pair{to_word(gradient[0]), to_word(gradient[1])});
            }, 2, half);
        }
        if constexpr (LAST_STOP) inputs.add(product, x, batch, mine * ROW_TILE);
    }
    if constexpr (LAST_STOP) inputs.store(sums + blockIdx.y * (INPUTS + 1) * FIRST + left);
}

// The gradients of layers as wide as L (blockIdx.z says which): a^T dz for the weight, the sums of dz for the bias. Each
// blockIdx.y takes its share of the rows, and leaves its sums for the update to add up. Blocks that see the same dz share
// the sums for the bias, so many lines each.
struct Task { const float *before, *after; float *weight_sums, *bias_sums; };

template <int L>
__device__ void weights(const Task* tasks) {
    constexpr int IN = padded(L), OUT = padded(L + 1), HIGH = tile(L), WIDE = tile(L + 1);
    constexpr long long STAGES_OF_ROWS = PADDED_ROWS / DEPTH;
    extern __shared__ __align__(16) float shared[];
    const Task task = tasks[blockIdx.z];
    const int left = blockIdx.x % (OUT / WIDE) * WIDE, top = blockIdx.x / (OUT / WIDE) * HIGH;
    const int first = STAGES_OF_ROWS * blockIdx.y / gridDim.y, end = STAGES_OF_ROWS * (blockIdx.y + 1) / gridDim.y;
    const long long row = first * DEPTH;
    typename Across<HIGH>::Copier a(task.before + row * IN + top, IN);
    typename Across<WIDE>::Copier b(task.after + row * OUT + left, OUT);
    int asked = first;
    auto copy = [&](float* to) {
        if (asked++ >= end) return;
        a.copy(to, IN);
        b.copy(to + Across<HIGH>::FLOATS, OUT);
    };
    Product<Across<HIGH>, Across<WIDE>> product;
    Pipeline<product.FLOATS, decltype(copy)> pipeline(shared, copy);
    constexpr int LINES = rounded_up((DEPTH + IN / HIGH - 1) / (IN / HIGH), 4);
    const int turn = top / HIGH;
    float bias_sum = 0.0f;
    for (int stage = first; stage < end; ++stage) {
        const float* arrived = pipeline.take();
        product.add(arrived);
        const float* mine = arrived + Across<HIGH>::FLOATS + turn * LINES * WIDE;
        if (threadIdx.x < WIDE)
#pragma unroll
            for (int i = 0; i < LINES; ++i)
                if (DEPTH % LINES == 0 || turn * LINES + i < DEPTH)
                    bias_sum += from_word(Across<WIDE>::number(mine, i, threadIdx.x));
    }
    float* corner = task.weight_sums + (blockIdx.y * IN + top) * OUT + left;
    product.for_each_pair([&](int row, int column, const float* sums) {
        put(corner + row * OUT + column, Pair{sums[0], sums[1]});
    });
    if (threadIdx.x < WIDE) task.bias_sums[(blockIdx.y * (IN / HIGH) + turn) * OUT + left + threadIdx.x] = bias_sum;
}

// A kernel for each layer that differs from the ones before; the plan lists them.
#define OF_PRODUCTS extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2)
#define FORWARD(L)                                                                                             \
    OF_PRODUCTS forward_##L(const float* before, const float* turned, const float* bias, float* after, float* slopes) { \
        forward<L>(before, turned, bias, after, slopes);                                                       \
    }
#define BACKWARD(L)                                                                                             \
    OF_PRODUCTS backward_##L(const float* after, const float* weight, const float* under, float* before,        \
                             const float* x, const int* batch, float* sums) {                                   \
        backward<L>(after, weight, under, before, x, batch, sums);                                              \
    }
#define WEIGHTS(L) \
    OF_PRODUCTS weights_##L(const Task* tasks) { weights<L>(tasks); }
