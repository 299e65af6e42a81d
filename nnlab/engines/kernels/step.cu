// One training step of a chain of linear layers as a few kernels, for the graph engine to capture: a product for each
// layer on the way forward, one for each but the first on the way back, and one launch for the gradients of them all.
// What a product is followed by (bias, activation, loss, slope, update) happens in its kernel, while the numbers are
// still in registers.
//
// Besides network.cuh's constants it needs, one entry a layer, the cuts of the three kinds of products, FORWARD_CUTS,
// BACKWARD_CUTS and GRADIENT_CUTS (see Cut in product.cuh), and SPLITS: among how many blocks the rows of a gradient
// are dealt out. Sums are taken in a fixed order; nothing is added atomically.

constexpr Cut FORWARD[] = {FORWARD_CUTS};
constexpr Cut BACKWARD[] = {BACKWARD_CUTS};
constexpr Cut GRADIENT[] = {GRADIENT_CUTS};
__device__ constexpr int SPLIT[] = {SPLITS};

// The workspace: values and slopes lie row by row, padded with zeros to whole groups of four.
__host__ __device__ constexpr int pitch(int level) { return rounded_up(WIDTH[level], 4); }
__host__ __device__ constexpr long long values_at(int level) {
    long long at = 0;
    for (int l = 1; l < level; ++l) at += (long long)ROWS * pitch(l);
    return at;
}
__host__ __device__ constexpr long long deltas_at(int level) {
    long long at = values_at(LAYERS);
    for (int l = 1; l < level; ++l) at += (long long)ROWS * pitch(l);
    return at;
}
constexpr int TERMS = pieces(ROWS, FORWARD[LAST].down) * pieces(OUTPUTS, FORWARD[LAST].across);
constexpr long long TERMS_AT = deltas_at(LAYERS + 1);
__host__ __device__ constexpr int parameters(int layer) { return (WIDTH[layer] + BIAS[layer]) * WIDTH[layer + 1]; }
__host__ __device__ constexpr int begin(int layer) {  // where its parameters lie among all
    int at = 0;
    for (int l = 0; l < layer; ++l) at += parameters(l);
    return at;
}
constexpr int PARAMETERS = begin(LAYERS);
__host__ __device__ constexpr long long parts_at(int layer) {
    long long at = TERMS_AT + rounded_up(TERMS, 4);
    for (int l = 0; l < layer; ++l) at += rounded_up(SPLIT[l] * parameters(l), 4);
    return at;
}
__host__ __device__ constexpr bool every_gradient_whole() {
    for (int l = 0; l < LAYERS; ++l)
        if (SPLIT[l] > 1) return false;
    return true;
}
constexpr bool WHOLE = every_gradient_whole();  // then its kernel makes the update too

template <int L>
__device__ inline const float* input_row(const float* x, const float* work, const int* batch, int row) {
    if constexpr (L > 0) return work + values_at(L) + (long long)row * pitch(L);
    else return x + (long long)(BATCHED ? batch[row] : row) * pitch(0);
}

// Level L + 1 from level L. x: pitch(0) floats a row. now: the number of this step among those that tables hold, once
// for the first kernel, which copies it, and once for the others. Behind the last layer comes the loss.
template <int L>
__global__ void __launch_bounds__(THREADS, 2)
forward(const float* __restrict__ weight, const float* __restrict__ bias, const float* __restrict__ x,
        const float* __restrict__ y, const int* __restrict__ batches, int* now, float* work) {
    constexpr Cut CUT = FORWARD[L];
    constexpr int IN = WIDTH[L], OUT = WIDTH[L + 1], ACROSS = pieces(OUT, CUT.across), PACK = OUT % 4 ? 1 : 4;
    SHARED_MEMORY(memory);
    float* shared = reinterpret_cast<float*>(memory);
    const int m0 = blockIdx.x / ACROSS * CUT.down, n0 = blockIdx.x % ACROSS * CUT.across;
    const int* batch = BATCHED ? batches + now[L > 0] * ROWS : batches;
    if (L == 0 && blockIdx.x == 0 && threadIdx.x == 0) now[1] = now[0];

    using Product = ProductOf<CUT.down, CUT.across, CUT.depth, CUT.thread_down, CUT.thread_across>;
    Product product;
    product.template add<false, 4, true, PACK>(
        shared, [&](int m) { return input_row<L>(x, work, batch, m); }, m0, ROWS,
        [&](int k) { return weight + k * OUT; }, n0, OUT, 0, IN);
    using Numbers = typename Product::Numbers;
    float terms = 0.0f;
    product.finish(
        shared,
        [&](int, int n) {
            Numbers offset = {};
            for (int q = 0; BIAS[L] && q < Product::PACK_ACROSS; ++q)
                if (!outside(n0 + n + q, OUT, CUT.across)) offset.at[q] = bias[n0 + n + q];
            return offset;
        },
        [&](int m, int n, Numbers z, Numbers offset) {
            m += m0;
            n += n0;
            if (outside(m, ROWS, CUT.down) || outside(n, OUT, CUT.across)) return;
            Numbers a = {}, slope = {};
            for (int q = 0; q < Product::PACK_ACROSS; ++q)
                if (!outside(n + q, OUT, CUT.across)) activate<L>(z.at[q] + offset.at[q], a.at[q], slope.at[q]);
            if constexpr (L == LAST) {
                const float* t = y + (long long)(BATCHED ? batch[m] : m) * OUT + n;
                for (int q = 0; q < Product::PACK_ACROSS; ++q)
                    if (!outside(n + q, OUT, CUT.across)) {
                        float term, gradient;
                        lose(a.at[q], t[q], term, gradient);
                        terms += term;
                        slope.at[q] *= gradient;
                    }
            } else {
                *reinterpret_cast<Numbers*>(work + values_at(L + 1) + (long long)m * pitch(L + 1) + n) = a;
            }
            if constexpr (L == LAST || ACTIVATION[L] == SINE)
                *reinterpret_cast<Numbers*>(work + deltas_at(L + 1) + (long long)m * pitch(L + 1) + n) = slope;
        });
    if constexpr (L == LAST) {
        terms = block_sum(shared, terms);
        if (threadIdx.x == 0) work[TERMS_AT + blockIdx.x] = terms;
    }
}

// dLoss/dz of the layer before layer L, from that of layer L.
template <int L>
__global__ void __launch_bounds__(THREADS, 2) backward(const float* __restrict__ weight, float* work) {
    constexpr Cut CUT = BACKWARD[L];
    constexpr int IN = WIDTH[L], OUT = WIDTH[L + 1], ACROSS = pieces(IN, CUT.across), PACK = OUT % 4 ? 1 : 4;
    SHARED_MEMORY(memory);
    float* shared = reinterpret_cast<float*>(memory);
    const int m0 = blockIdx.x / ACROSS * CUT.down, n0 = blockIdx.x % ACROSS * CUT.across;
    using Product = ProductOf<CUT.down, CUT.across, CUT.depth, CUT.thread_down, CUT.thread_across>;
    Product product;
    product.template add<false, 4, false, PACK>(
        shared, [&](int m) { return work + deltas_at(L + 1) + (long long)m * pitch(L + 1); }, m0, ROWS,
        [&](int n) { return weight + n * OUT; }, n0, IN, 0, OUT);
    using Numbers = typename Product::Numbers;
    constexpr int BEFORE = ACTIVATION[L - 1];
    // A sine's slopes have been kept where the results go; others are told from the values.
    constexpr long long FROM = BEFORE == SINE ? deltas_at(L) : values_at(L);
    product.finish(
        shared,
        [&](int m, int n) {
            if (BEFORE == LINEAR || outside(m0 + m, ROWS, CUT.down) || outside(n0 + n, IN, CUT.across))
                return Numbers{};
            return *reinterpret_cast<const Numbers*>(work + FROM + (long long)(m0 + m) * pitch(L) + n0 + n);
        },
        [&](int m, int n, Numbers sum, Numbers read) {
            m += m0;
            n += n0;
            if (outside(m, ROWS, CUT.down) || outside(n, IN, CUT.across)) return;
            for (int q = 0; q < Product::PACK_ACROSS; ++q) {
                sum.at[q] *= BEFORE == SINE ? read.at[q] : slope_at<L - 1>(read.at[q]);
                if (outside(n + q, IN, CUT.across)) sum.at[q] = 0.0f;  // the padding
            }
            *reinterpret_cast<Numbers*>(work + deltas_at(L) + (long long)m * pitch(L) + n) = sum;
        });
}

// A parameter's update; its: the addresses of its tensor and of what the optimiser remembers of it.
__device__ inline void update_at(float* const* its, int place, const float* factor, float gradient) {
    float none = 0.0f;
    float& m = MEMORIES > 0 ? its[1][place] : none;
    float& v = MEMORIES > 1 ? its[2][place] : none;
    update(factor, gradient, its[0][place], m, v);
}

// The step's loss from its terms, and on to the next step. By one block.
__device__ inline void end_step(float* shared, const float* work, int* now, float* losses) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < TERMS; i += THREADS) sum += work[TERMS_AT + i];
    sum = block_sum(shared, sum);
    if (threadIdx.x == 0) {
        losses[now[1]] = sum * SHARE;
        now[0] = now[1] + 1;
    }
}

__host__ __device__ constexpr int tensor(int layer) {  // its weight's place among all weights and biases
    int at = 0;
    for (int l = 0; l < layer; ++l) at += 1 + BIAS[l];
    return at;
}

template <int L>
__device__ void gradient(int block, float* shared, float* const* arrays, const float* x, const int* batch,
                         const float* factor, float* work) {
    constexpr Cut CUT = GRADIENT[L];
    constexpr int IN = WIDTH[L], OUT = WIDTH[L + 1];
    constexpr int ACROSS = pieces(OUT, CUT.across), TILES = pieces(IN, CUT.down) * ACROSS;
    if constexpr (L < LAST)
        if (block >= TILES * SPLIT[L])
            return gradient<L + 1>(block - TILES * SPLIT[L], shared, arrays, x, batch, factor, work);
    constexpr int SHARE_ROWS = rounded_up(pieces(ROWS, SPLIT[L]), CUT.depth);
    const int split = block / TILES, first = split * SHARE_ROWS;
    const int m0 = block % TILES / ACROSS * CUT.down, n0 = block % ACROSS * CUT.across;
    const bool with_bias = BIAS[L] && m0 == 0;
    using Product = ProductOf<CUT.down, CUT.across, CUT.depth, CUT.thread_down, CUT.thread_across>;
    Product product;
    product.template add<true, 4, true, 4>(
        shared, [&](int k) { return input_row<L>(x, work, batch, k); }, m0, IN,
        [&](int k) { return work + deltas_at(L + 1) + (long long)k * pitch(L + 1); }, n0, OUT, first,
        min(first + SHARE_ROWS, ROWS), with_bias);
    float* part = work + parts_at(L) + (long long)split * parameters(L);
    float* const* its = arrays + tensor(L) * ARRAYS;
    using Numbers = typename Product::Numbers;
    product.finish(
        shared, [](int, int) { return Numbers{}; },
        [&](int m, int n, Numbers sum, Numbers) {
            m += m0;
            n += n0;
            for (int q = 0; q < Product::PACK_ACROSS; ++q)
                if (!outside(m, IN, CUT.down) && !outside(n + q, OUT, CUT.across)) {
                    if constexpr (WHOLE) update_at(its, m * OUT + n + q, factor, sum.at[q]);
                    else part[m * OUT + n + q] = sum.at[q];
                }
        });
    if (with_bias) {
        const float sum = product.columns(shared);
        const int n = n0 + threadIdx.x;
        if (threadIdx.x < CUT.across && n < OUT) {
            if constexpr (WHOLE) update_at(its + ARRAYS, n, factor, sum);
            else part[IN * OUT + n] = sum;
        }
    }
}

__host__ __device__ constexpr int gradient_blocks() {
    int blocks = 0;
    for (int l = 0; l < LAYERS; ++l)
        blocks += pieces(WIDTH[l], GRADIENT[l].down) * pieces(WIDTH[l + 1], GRADIENT[l].across) * SPLIT[l];
    return blocks;
}

// The gradients of all layers: each layer has its own blocks. Where no gradient is split among blocks, the updates too.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
gradients(float* const* arrays, const float* x, const int* batches, const float* factors, int* now, float* losses,
          float* work) {
    SHARED_MEMORY(memory);
    float* shared = reinterpret_cast<float*>(memory);
    const int step = now[1];
    const int* batch = BATCHED ? batches + step * ROWS : batches;
    gradient<0>(blockIdx.x, shared, arrays, x, batch, factors + step * FACTORS, work);
    if constexpr (WHOLE)
        if (blockIdx.x == gradient_blocks() - 1) end_step(shared, work, now, losses);
}

// Adds up the parts of each gradient and makes the update; one more block ends the step. Where parameters are few, the
// eight warps of a block share the parts of 32 of them.
constexpr int SHARES = PARAMETERS < 65536 ? THREADS / 32 : 1, AT_ONCE = THREADS / SHARES;

extern "C" __global__ void __launch_bounds__(THREADS)
update_all(float* const* arrays, const float* factors, int* now, float* losses, float* work) {
    SHARED_MEMORY(memory);
    float* shared = reinterpret_cast<float*>(memory);
    if (blockIdx.x == pieces(PARAMETERS, AT_ONCE)) {
        end_step(shared, work, now, losses);
        return;
    }
    const int p = blockIdx.x * AT_ONCE + threadIdx.x % AT_ONCE, share = threadIdx.x / AT_ONCE;
    int layer = 0;
    while (layer < LAST && p >= begin(layer + 1)) ++layer;
    const int splits = SPLIT[layer], apart = parameters(layer);
    int place = p - begin(layer);
    float sum = 0.0f;
    if (p < PARAMETERS) {
        const float* part = work + parts_at(layer) + place;
#pragma unroll 16
        for (int s = share; s < splits; s += SHARES) sum += part[(long long)s * apart];
    }
    if constexpr (SHARES > 1) {
        shared[threadIdx.x] = sum;
        __syncthreads();
        sum = 0.0f;
        for (int s = 0; s < SHARES; ++s) sum += shared[s * AT_ONCE + threadIdx.x % AT_ONCE];
    }
    if (p >= PARAMETERS || share > 0) return;
    const int weights = WIDTH[layer] * WIDTH[layer + 1];
    const bool is_bias = place >= weights;
    float* const* its = arrays + (tensor(layer) + is_bias) * ARRAYS;
    update_at(its, is_bias ? place - weights : place, factors + now[1] * FACTORS, sum);
}
