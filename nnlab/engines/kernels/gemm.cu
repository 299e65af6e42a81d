// Training steps of networks too wide for a block's shared memory, as a sequence of kernels over all rows: for each
// layer between the first and the last one product forward, two backward, each with what belongs to it done on the sums
// while they are in registers. ends.cuh has the kernels of the first and the last layer and of the update.
//
// Level l is what lies between layer l - 1 and layer l: an array of PADDED_ROWS x padded(l) words. It holds activations
// until the product backward writes the gradients dLoss/dz over them, number by number. Padding does no harm: its
// weights are zero, and in rows past the last one dLoss/dz is zero.

constexpr int ROW_TILE = 128, COLUMN_TILE = 128, NARROW_TILE = 64;
constexpr int PADDED_ROWS = rounded_up(ROWS, ROW_TILE);
__host__ __device__ constexpr int padded(int level) { return rounded_up(WIDTH[level], NARROW_TILE); }
__host__ __device__ constexpr int tile(int level) { return padded(level) % COLUMN_TILE ? NARROW_TILE : COLUMN_TILE; }

// Level L + 1 from level L: z = b + a W, and the activation. turned: W the other way around, an output a line.
template <int L>
__device__ void forward(const float* before, const float* turned, const float* bias, float* after, float* slopes) {
    constexpr int IN = padded(L), OUT = padded(L + 1), SIZE = tile(L + 1);
    extern __shared__ __align__(16) float shared[];
    const int left = blockIdx.x % (OUT / SIZE) * SIZE;
    const long long top = blockIdx.x / (OUT / SIZE) * ROW_TILE;
    Product<Along<ROW_TILE>, Along<SIZE>> product;
    product.begin_with(bias + left);
    product.add(shared, before + top * IN, IN, turned + left * IN, IN, IN / DEPTH);
    after += top * OUT + left;
    slopes += top * OUT + left;
    product.for_each_pair([&](int row, int column, const Pair& z) {
        keep_all<L>(after, slopes, row * OUT + column, z);
    });
}

// dLoss/dz of layer L - 1, over the activations of level L, from that of layer L: (dz W^T) times the slope.
template <int L>
__device__ void backward(const float* after, const float* weight, float* before, const float* slopes) {
    constexpr int IN = padded(L), OUT = padded(L + 1), SIZE = tile(L);
    extern __shared__ __align__(16) float shared[];
    const int left = blockIdx.x % (IN / SIZE) * SIZE;
    const long long top = blockIdx.x / (IN / SIZE) * ROW_TILE;
    before += top * IN + left;
    slopes += top * IN + left;
    for (int i = threadIdx.x; i < ROW_TILE * SIZE / 32; i += PRODUCT_THREADS) {
        const int line = i / (SIZE / 32) * IN + i % (SIZE / 32) * 32;
        expect(before + line);
        if (has_slopes(L - 1)) expect(slopes + line);
    }
    Product<Along<ROW_TILE>, Along<SIZE>> product;
    product.add(shared, after + top * OUT, OUT, weight + left * OUT, OUT, OUT / DEPTH);
    product.for_each_pair([&](int row, int column, Pair gradient) {
        const int at = row * IN + column;
        const Pair word = pair(before + at), slope = has_slopes(L - 1) ? pair(slopes + at) : word;
#pragma unroll
        for (int i = 0; i < 2; ++i)
            gradient.at[i] = to_word(gradient.at[i] * kept_slope<L - 1>(word.at[i], slope.at[i]));
        put(before + at, gradient);
    });
}

// The gradients of layer L: a^T dz for its weight, and the sums of dz for its bias. Each blockIdx.y takes its share of
// the rows, and leaves its sums for the update to add up.
template <int L>
__device__ void weights(const float* before, const float* after, float* weight_sums, float* bias_sums) {
    constexpr int IN = padded(L), OUT = padded(L + 1), HIGH = tile(L), WIDE = tile(L + 1);
    constexpr long long STAGES_OF_ROWS = PADDED_ROWS / DEPTH;
    extern __shared__ __align__(16) float shared[];
    const int left = blockIdx.x % (OUT / WIDE) * WIDE, top = blockIdx.x / (OUT / WIDE) * HIGH;
    const int first = STAGES_OF_ROWS * blockIdx.y / gridDim.y, end = STAGES_OF_ROWS * (blockIdx.y + 1) / gridDim.y;
    const long long row = first * DEPTH;
    Product<Across<HIGH>, Across<WIDE>> product;
    const Lane me;
    const bool also_bias = top == 0 && me.down == 0;
    product.add(shared, before + row * IN + top, IN, after + row * OUT + left, OUT, end - first, also_bias);
    weight_sums += (blockIdx.y * IN + top) * OUT + left;
    product.for_each_pair([&](int row, int column, const Pair& sums) { put(weight_sums + row * OUT + column, sums); });
    if (!also_bias) return;
#pragma unroll
    for (int j = 0; j < product.ACROSS; ++j) {
        float sum = product.column_sums[j];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if (me.fourth == 0) bias_sums[blockIdx.y * OUT + left + me.across * product.WIDE + 8 * j + me.group] = sum;
    }
}

// A kernel for each layer that differs from the ones before; the plan lists them.
#define OF_PRODUCTS extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2)
#define FORWARD(L)                                                                                             \
    OF_PRODUCTS forward_##L(const float* before, const float* turned, const float* bias, float* after, float* slopes) { \
        forward<L>(before, turned, bias, after, slopes);                                                       \
    }
#define BACKWARD(L)                                                                                            \
    OF_PRODUCTS backward_##L(const float* after, const float* weight, float* before, const float* slopes) {    \
        backward<L>(after, weight, before, slopes);                                                            \
    }
#define WEIGHTS(L)                                                                                             \
    OF_PRODUCTS weights_##L(const float* before, const float* after, float* weight_sums, float* bias_sums) {   \
        weights<L>(before, after, weight_sums, bias_sums);                                                     \
    }
