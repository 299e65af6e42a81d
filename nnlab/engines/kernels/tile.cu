// One training step of a network up to 128 wide on many rows, such as the pixels of a picture, as two kernels.
//
// tile_gradients: every block keeps all weights and a tile of rows in shared memory, and takes its tiles through
// forward, loss and backward without going back to the card's memory. The gradients of the weights stay in registers
// until the block's last tile. tile_update adds up the blocks' gradients, in order, and takes the optimiser's step.
//
// Besides network.cuh's constants it needs mma.cuh's, and UNROLL: how many steps of a product the compiler writes out.

constexpr int TILE = 64;  // rows
constexpr int WRITTEN_OUT = UNROLL;
constexpr int WARPS_DOWN = 2, WARPS_ACROSS = 4, WARPS = WARPS_DOWN * WARPS_ACROSS;  // how warps share an output

// Widths between layers are padded to 16, which are the rows of a piece of a gradient; the first and the last to 8.
// The padding is zeros, and changes no result.
__host__ __device__ constexpr int padded(int level) {
    return rounded_up(WIDTH[level], level == 0 || level == LAYERS ? 8 : 16);
}
// Rows lie 4 words apart (mod 32 banks or, for narrow ones, mod 8), so a warp's loads of a piece fall into 32 banks.
__host__ __device__ constexpr int stride(int level) { return padded(level) + 4; }
__host__ __device__ constexpr int level_at(int level) {
    int at = 0;
    for (int l = 0; l < level; ++l) at += TILE * stride(l);
    return at;
}
__host__ __device__ constexpr int weights_at(int layer) {
    int at = level_at(LAYERS + 1);
    for (int l = 0; l < layer; ++l) at += (padded(l) + 1) * stride(l + 1);  // the bias is one more row
    return at;
}
constexpr int SHARED_FLOATS = weights_at(LAYERS) + WARPS;
static_assert(4 * SHARED_FLOATS == SHARED_BYTES, "fused_tile.py counts the same bytes");

// Where layer's gradients lie among a block's: those of its weight, then those of its bias; the loss comes last.
__host__ __device__ constexpr int begin(int layer) {
    int at = 0;
    for (int l = 0; l < layer; ++l) at += (WIDTH[l] + BIAS[l]) * WIDTH[l + 1];
    return at;
}
constexpr int PARAMETERS = begin(LAYERS), SUMS = PARAMETERS + 1;

// Which of the 16 x 8 pieces of an M x N output are this warp's: DOWN x ACROSS of them at most.
template <int M, int N>
struct Share {
    static constexpr int PIECES_DOWN = M / 16, PIECES_ACROSS = N / 8;
    static constexpr int DOWN = (PIECES_DOWN + WARPS_DOWN - 1) / WARPS_DOWN;
    static constexpr int ACROSS = (PIECES_ACROSS + WARPS_ACROSS - 1) / WARPS_ACROSS;
    using Pieces = float[DOWN][ACROSS][4];
    __device__ static int row(int i) { return int(threadIdx.x) / 32 / WARPS_ACROSS + i * WARPS_DOWN; }
    __device__ static int column(int j) { return int(threadIdx.x) / 32 % WARPS_ACROSS + j * WARPS_ACROSS; }
};

// c += A B, summed over k below K; a(m, k) and b(k, n) read the operands. A piece's eight k are dealt to four lanes:
// k and k + 4, or with IN_PAIRS 2k and 2k + 1. Either order gives the sum; one of them spreads the loads over the banks.
template <int M, int N, int K, bool IN_PAIRS, typename A, typename B>
__device__ inline void multiply(typename Share<M, N>::Pieces& c, A a, B b) {
    using Mine = Share<M, N>;
    const int lane = threadIdx.x % 32, group = lane / 4, fourth = lane % 4;
    const int k0 = IN_PAIRS ? 2 * fourth : fourth, k1 = IN_PAIRS ? k0 + 1 : k0 + 4;
#pragma unroll WRITTEN_OUT
    for (int k = 0; k < K; k += 8) {
        Split right[Mine::ACROSS][2];
#pragma unroll
        for (int j = 0; j < Mine::ACROSS; ++j) {
            const int n = min(Mine::column(j), Mine::PIECES_ACROSS - 1) * 8 + group;
            right[j][0] = Split(b(k + k0, n));
            right[j][1] = Split(b(k + k1, n));
        }
#pragma unroll
        for (int i = 0; i < Mine::DOWN; ++i) {
            const int m = min(Mine::row(i), Mine::PIECES_DOWN - 1) * 16 + group;
            const Split left[4] = {a(m, k + k0), a(m + 8, k + k0), a(m, k + k1), a(m + 8, k + k1)};
#pragma unroll
            for (int j = 0; j < Mine::ACROSS; ++j) add_product(c[i][j], left, right[j]);
        }
    }
}

// work(row, column, value) for each number of this warp's pieces that this lane holds.
template <int M, int N, typename Work>
__device__ inline void for_each_number(typename Share<M, N>::Pieces& c, Work work) {
    using Mine = Share<M, N>;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < Mine::DOWN; ++i)
#pragma unroll
        for (int j = 0; j < Mine::ACROSS; ++j) {
            if (Mine::row(i) >= Mine::PIECES_DOWN || Mine::column(j) >= Mine::PIECES_ACROSS) continue;
            const int m = Mine::row(i) * 16 + lane / 4, n = Mine::column(j) * 8 + 2 * (lane % 4);
            work(m, n, c[i][j][0]);
            work(m, n + 1, c[i][j][1]);
            work(m + 8, n, c[i][j][2]);
            work(m + 8, n + 1, c[i][j][3]);
        }
}

// The slope of the activation behind layer L where its value is a.
template <int L>
__device__ inline float slope(float a) {
    if constexpr (ACTIVATION[L] == TANH) return 1.0f - a * a;
    if constexpr (ACTIVATION[L] == SIGMOID) return (1.0f - a) * a;
    if constexpr (ACTIVATION[L] == RELU) return a > 0.0f ? 1.0f : 0.0f;
    if constexpr (ACTIVATION[L] == LEAKY_RELU) return a > 0.0f ? 1.0f : LEAK;
    return 1.0f;
}

// A layer and those after it; its gradients wait in registers from tile to tile.
template <int L>
struct Layer {
    static constexpr int IN = padded(L), OUT = padded(L + 1), IN_STRIDE = stride(L), OUT_STRIDE = stride(L + 1);
    // Where the inputs are 8 wide, a piece's other rows are made of what lies beside them, and are never stored.
    static constexpr int GRADIENT_ROWS = rounded_up(IN, 16);
    typename Share<GRADIENT_ROWS, OUT>::Pieces weight_gradient = {};
    float bias_gradient = 0.0f;
    Layer<L + 1> after;

    __device__ void load(float* shared, float* const* arrays) {
        const float* weight = arrays[0];
        const float* bias = BIAS[L] ? arrays[ARRAYS] : nullptr;
        for (int i = threadIdx.x; i < (IN + 1) * OUT_STRIDE; i += THREADS) {
            const int row = i / OUT_STRIDE, column = i % OUT_STRIDE;
            float v = 0.0f;
            if (column < WIDTH[L + 1] && row < WIDTH[L]) v = weight[row * WIDTH[L + 1] + column];
            if (column < WIDTH[L + 1] && row == IN && BIAS[L]) v = bias[column];
            shared[weights_at(L) + i] = v;
        }
        after.load(shared, arrays + (1 + BIAS[L]) * ARRAYS);
    }

    __device__ void forward(float* shared) {
        const float* in = shared + level_at(L);
        const float* weight = shared + weights_at(L);
        float* out = shared + level_at(L + 1);
        typename Share<TILE, OUT>::Pieces z = {};
        multiply<TILE, OUT, IN, false>(
            z, [&](int m, int k) { return in[m * IN_STRIDE + k]; },
            [&](int k, int n) { return weight[k * OUT_STRIDE + n]; });
        for_each_number<TILE, OUT>(z, [&](int m, int n, float sum) {
            float a, unused;
            activate<L>(sum + weight[IN * OUT_STRIDE + n], a, unused);
            out[m * OUT_STRIDE + n] = a;
        });
        __syncthreads();
        after.forward(shared);
    }

    // Begins with dLoss/dz of this layer where its values stood, and leaves that of the layer before in the same way.
    __device__ void backward(float* shared) {
        after.backward(shared);
        float* in = shared + level_at(L);
        const float* weight = shared + weights_at(L);
        const float* delta = shared + level_at(L + 1);
        multiply<GRADIENT_ROWS, OUT, TILE, true>(
            weight_gradient, [&](int m, int k) { return in[k * IN_STRIDE + m]; },
            [&](int k, int n) { return delta[k * OUT_STRIDE + n]; });
        if (BIAS[L] && threadIdx.x < OUT)
            for (int row = 0; row < TILE; ++row) bias_gradient += delta[row * OUT_STRIDE + threadIdx.x];
        __syncthreads();
        if constexpr (L > 0) {
            typename Share<TILE, IN>::Pieces gradient = {};
            multiply<TILE, IN, OUT, false>(
                gradient, [&](int m, int k) { return delta[m * OUT_STRIDE + k]; },
                [&](int k, int n) { return weight[n * OUT_STRIDE + k]; });
            for_each_number<TILE, IN>(gradient, [&](int m, int n, float sum) {
                float& a = in[m * IN_STRIDE + n];
                a = sum * slope<L - 1>(a);
            });
            __syncthreads();
        }
    }

    __device__ void store(float* sums) {
        for_each_number<GRADIENT_ROWS, OUT>(weight_gradient, [&](int m, int n, float sum) {
            if (m < WIDTH[L] && n < WIDTH[L + 1]) sums[begin(L) + m * WIDTH[L + 1] + n] = sum;
        });
        if (BIAS[L] && threadIdx.x < WIDTH[L + 1])
            sums[begin(L) + WIDTH[L] * WIDTH[L + 1] + threadIdx.x] = bias_gradient;
        after.store(sums);
    }
};

template <>
struct Layer<LAYERS> {
    __device__ void load(float*, float* const*) {}
    __device__ void forward(float*) {}
    __device__ void backward(float*) {}
    __device__ void store(float*) {}
};

// batch: the row numbers of this step (BATCHED). sums: SUMS numbers for each block.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
tile_gradients(float* const* arrays, const float* x, const float* y, const int* batch, float* sums) {
    extern __shared__ __align__(16) float shared[];
    float* input = shared + level_at(0);
    float* output = shared + level_at(LAYERS);
    Layer<0> network;
    network.load(shared, arrays);
    float loss = 0.0f;
    for (int first = blockIdx.x * TILE; first < ROWS; first += gridDim.x * TILE) {
        for (int i = threadIdx.x; i < TILE * padded(0); i += THREADS) {
            const int row = i / padded(0), column = i % padded(0);
            const bool real = first + row < ROWS && column < WIDTH[0];
            const long long from = !real ? 0 : BATCHED ? batch[first + row] : first + row;
            input[row * stride(0) + column] = real ? x[from * WIDTH[0] + column] : 0.0f;
        }
        __syncthreads();
        network.forward(shared);
        for (int i = threadIdx.x; i < TILE * padded(LAYERS); i += THREADS) {
            const int row = i / padded(LAYERS), column = i % padded(LAYERS);
            const bool real = first + row < ROWS && column < OUTPUTS;
            float& p = output[row * stride(LAYERS) + column];
            float term = 0.0f, gradient = 0.0f;
            if (real) {
                const long long from = BATCHED ? batch[first + row] : first + row;
                lose(p, y[from * OUTPUTS + column], term, gradient);
            }
            loss += term;
            p = gradient * slope<LAST>(p);
        }
        __syncthreads();
        network.backward(shared);
    }
    float* mine = sums + blockIdx.x * SUMS;
    network.store(mine);

    float* warps = shared + weights_at(LAYERS);
    loss = warp_sum(loss);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = loss;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int warp = 0; warp < WARPS; ++warp) total += warps[warp];
        mine[PARAMETERS] = total * SHARE;
    }
}

// A thread a parameter, and one for the loss. factor: the optimiser's numbers of this step.
extern "C" __global__ void tile_update(float* const* arrays, const float* sums, int blocks, const float* factor,
                                       float* loss) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= SUMS) return;
    float sum = 0.0f;
#pragma unroll 8
    for (int block = 0; block < blocks; ++block) sum += sums[block * SUMS + p];
    if (p == PARAMETERS) {
        *loss = sum;
        return;
    }
    int layer = 0, tensor = 0;
    for (; layer < LAST && p >= begin(layer + 1); ++layer) tensor += 1 + BIAS[layer];
    int place = p - begin(layer);
    const int weights = WIDTH[layer] * WIDTH[layer + 1];
    if (place >= weights) {
        place -= weights;
        ++tensor;
    }
    float* const* its = arrays + tensor * ARRAYS;
    float none = 0.0f;
    float& m = MEMORIES > 0 ? its[1][place] : none;
    float& v = MEMORIES > 1 ? its[2][place] : none;
    update(factor, sum, its[0][place], m, v);
}
