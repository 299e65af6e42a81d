// One training step of a chain of linear layers as a few kernels, for the graph engine to capture: a product for each
// layer on the way forward, one for each but the first on the way back, and one launch for the gradients of them all.
// What a product is followed by (bias, activation, loss, slope, update) happens in its kernel, while the numbers are
// still in registers.
//
// Besides network.cuh's constants it needs, one entry a layer, the cuts of the three kinds of products, FORWARD_CUTS,
// BACKWARD_CUTS and GRADIENT_CUTS (see Cut), and SPLITS: among how many blocks the rows of a gradient are dealt out.
// Sums are taken in a fixed order; nothing is added atomically.

// Each block makes down x across numbers of a product, `depth` terms at a time, and each of its threads
// thread_down x thread_across. What threads are left over share the terms, and their sums are added up in the end.
struct Cut { int down, across, depth, thread_down, thread_across; };
constexpr Cut FORWARD[] = {FORWARD_CUTS};
constexpr Cut BACKWARD[] = {BACKWARD_CUTS};
constexpr Cut GRADIENT[] = {GRADIENT_CUTS};
__device__ constexpr int SPLIT[] = {SPLITS};

__host__ __device__ constexpr int pieces(int n, int size) { return (n + size - 1) / size; }

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

// Whether place i lies beyond an end; known to the compiler where whole pieces fill the side, which saves branches.
__device__ constexpr bool outside(int i, int end, int piece) { return end % piece != 0 && i >= end; }

template <int N>
struct alignas(4 * N) Pack { float at[N]; };

// A piece of a matrix, SIDE x DEPTH, on its way to shared memory, where it lies as [DEPTH][STRIDE]. ALONG: the rows of
// the matrix run along the side, else along the depth. Floats are read in packs.
template <int SIDE, int DEPTH, bool ALONG, int WIDEST>
struct Carrier {
    static constexpr int PACK = ALONG && SIDE < WIDEST ? SIDE : WIDEST;
    static constexpr int STRIDE = SIDE < 4 ? SIDE : SIDE + 4;
    static constexpr int RUN = (ALONG ? SIDE : DEPTH) / PACK, PACKS = SIDE * DEPTH / PACK;
    static constexpr int EACH = pieces(PACKS, THREADS);
    static_assert(RUN * PACK == (ALONG ? SIDE : DEPTH), "packs fill a row of the piece");
    // Where rows are turned around, two lanes share a row and eight rows are taken together: whole sectors of memory are
    // read, and what the lanes write falls into different banks (of every two at worst).
    static constexpr int BESIDE = !ALONG && RUN > 1 ? 2 : 1, TOGETHER = ALONG ? 1 : SIDE < 8 ? SIDE : 8;
    Pack<PACK> held[EACH];

    __device__ static int row_of(int i) { return i / (TOGETHER * RUN) * TOGETHER + i / BESIDE % TOGETHER; }
    __device__ static int place_of(int i) {
        return (i / (TOGETHER * BESIDE) % (RUN / BESIDE) * BESIDE + i % BESIDE) * PACK;
    }

    // row(i): where row i of the matrix begins. What lies beyond the ends is zero.
    template <typename Row>
    __device__ void fetch(Row row, int side0, int side_end, int depth0, int depth_end) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const int i = threadIdx.x + e * THREADS, r = row_of(i), p = place_of(i);
            const int side = side0 + (ALONG ? p : r), depth = depth0 + (ALONG ? r : p);
            held[e] = {};
            if ((PACKS % THREADS == 0 || i < PACKS) && side < side_end && depth < depth_end)
                held[e] = *reinterpret_cast<const Pack<PACK>*>(row(ALONG ? depth : side) + (ALONG ? side : depth));
        }
    }

    __device__ void store(float* shared) const {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const int i = threadIdx.x + e * THREADS, r = row_of(i), p = place_of(i);
            if (PACKS % THREADS != 0 && i >= PACKS) break;
            if constexpr (ALONG) *reinterpret_cast<Pack<PACK>*>(shared + r * STRIDE + p) = held[e];
            else
                for (int q = 0; q < PACK; ++q) shared[(p + q) * STRIDE + r] = held[e].at[q];
        }
    }
};

// A block's share of a product C = A B.
template <int DOWN, int ACROSS, int DEPTH, int MINE_DOWN, int MINE_ACROSS>
struct ProductOf {
    static constexpr int GRID_DOWN = DOWN / MINE_DOWN, GRID_ACROSS = ACROSS / MINE_ACROSS;
    static constexpr int SLICES = THREADS / (GRID_DOWN * GRID_ACROSS);
    static_assert(SLICES * GRID_DOWN * GRID_ACROSS == THREADS && DEPTH % SLICES == 0, "every thread has its share");
    // A warp works on a compact patch, so that its lanes read the same numbers of shared memory.
    static constexpr int LANES_ACROSS = GRID_ACROSS < 8 ? GRID_ACROSS : 8;
    static constexpr int LANES_DOWN = GRID_DOWN < 32 / LANES_ACROSS ? GRID_DOWN : 32 / LANES_ACROSS;
    static constexpr int LANES = LANES_ACROSS * LANES_DOWN;
    static constexpr int WARPS_ACROSS = GRID_ACROSS / LANES_ACROSS, WARPS_DOWN = GRID_DOWN / LANES_DOWN;
    static constexpr int PACK_DOWN = MINE_DOWN < 4 ? MINE_DOWN : 4, PACK_ACROSS = MINE_ACROSS < 4 ? MINE_ACROSS : 4;
    using Numbers = Pack<PACK_ACROSS>;

    int row, column, slice;  // of this thread's first number
    float c[MINE_DOWN][MINE_ACROSS] = {};
    float column_sum = 0.0f;  // of B; see sum_columns

    __device__ ProductOf() {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        column = (warp % WARPS_ACROSS * LANES_ACROSS * MINE_ACROSS) + lane % LANES_ACROSS * PACK_ACROSS;
        row = warp / WARPS_ACROSS % WARPS_DOWN * LANES_DOWN * MINE_DOWN + lane / LANES_ACROSS % LANES_DOWN * PACK_DOWN;
        slice = warp / (WARPS_ACROSS * WARPS_DOWN) * (32 / LANES) + lane / LANES;
    }
    __device__ Numbers pack(int i, int j) const {
        Numbers some;
#pragma unroll
        for (int q = 0; q < PACK_ACROSS; ++q) some.at[q] = c[i][j + q];
        return some;
    }
    __device__ int row_of(int i) const { return row + i / PACK_DOWN * LANES_DOWN * PACK_DOWN + i % PACK_DOWN; }
    __device__ int column_of(int j) const { return column + j / PACK_ACROSS * LANES_ACROSS * PACK_ACROSS; }

    // Add the terms from k0 to k_end of C's part that begins at (m0, n0). A and B: the Carriers' layouts.
    template <bool A_ALONG, int A_PACK, bool B_ALONG, int B_PACK, typename RowA, typename RowB>
    __device__ void add(float* shared, RowA row_a, int m0, int m_end, RowB row_b, int n0, int n_end, int k0, int k_end,
                        bool sum_columns = false) {
        using A = Carrier<DOWN, DEPTH, A_ALONG, A_PACK>;
        using B = Carrier<ACROSS, DEPTH, B_ALONG, B_PACK>;
        constexpr int STAGE = DEPTH * (A::STRIDE + B::STRIDE), TO_B = DEPTH * A::STRIDE;
        A a;
        B b;
        a.fetch(row_a, m0, m_end, k0, k_end);
        b.fetch(row_b, n0, n_end, k0, k_end);
        a.store(shared);
        b.store(shared + TO_B);
        __syncthreads();
        float* now = shared;
        for (int k = k0; k < k_end; k += DEPTH) {  // the next terms arrive while these are multiplied
            float* next = now == shared ? shared + STAGE : shared;
            // Without a branch around it, which the compiler would move to where the numbers are stored.
            a.fetch(row_a, m0, m_end, k + DEPTH, k_end);
            b.fetch(row_b, n0, n_end, k + DEPTH, k_end);
#pragma unroll
            for (int e = 0; e < DEPTH / SLICES; ++e) {
                const int d = e * SLICES + slice;
                Pack<PACK_DOWN> left[MINE_DOWN / PACK_DOWN];
                Pack<PACK_ACROSS> right[MINE_ACROSS / PACK_ACROSS];
#pragma unroll
                for (int i = 0; i < MINE_DOWN; i += PACK_DOWN)
                    left[i / PACK_DOWN] = *reinterpret_cast<Pack<PACK_DOWN>*>(now + d * A::STRIDE + row_of(i));
#pragma unroll
                for (int j = 0; j < MINE_ACROSS; j += PACK_ACROSS)
                    right[j / PACK_ACROSS] =
                        *reinterpret_cast<Pack<PACK_ACROSS>*>(now + TO_B + d * B::STRIDE + column_of(j));
#pragma unroll
                for (int i = 0; i < MINE_DOWN; ++i)
#pragma unroll
                    for (int j = 0; j < MINE_ACROSS; ++j)
                        c[i][j] += left[i / PACK_DOWN].at[i % PACK_DOWN] * right[j / PACK_ACROSS].at[j % PACK_ACROSS];
            }
            if (sum_columns)
                for (int d = threadIdx.x / ACROSS; d < DEPTH; d += THREADS / ACROSS)
                    column_sum += now[TO_B + d * B::STRIDE + threadIdx.x % ACROSS];
            a.store(next);
            b.store(next + TO_B);
            __syncthreads();
            now = next;
        }
    }

    // work(row, column, numbers, read) for every pack of numbers of the block's part, by some thread; read: what
    // ask(row, column) gave, which is asked for some packs ahead, as memory answers late.
    template <typename Ask, typename Work>
    __device__ void finish(float* shared, Ask ask, Work work) {
        constexpr int ROWS_AHEAD = MINE_DOWN < 4 ? MINE_DOWN : 4;
        if constexpr (SLICES == 1) {
#pragma unroll
            for (int i = 0; i < MINE_DOWN; i += ROWS_AHEAD) {
                Numbers read[ROWS_AHEAD][MINE_ACROSS / PACK_ACROSS];
#pragma unroll
                for (int r = 0; r < ROWS_AHEAD; ++r)
#pragma unroll
                    for (int j = 0; j < MINE_ACROSS; j += PACK_ACROSS)
                        read[r][j / PACK_ACROSS] = ask(row_of(i + r), column_of(j));
#pragma unroll
                for (int r = 0; r < ROWS_AHEAD; ++r)
#pragma unroll
                    for (int j = 0; j < MINE_ACROSS; j += PACK_ACROSS)
                        work(row_of(i + r), column_of(j), pack(i + r, j), read[r][j / PACK_ACROSS]);
            }
        } else {
#pragma unroll
            for (int i = 0; i < MINE_DOWN; ++i)
#pragma unroll
                for (int j = 0; j < MINE_ACROSS; j += PACK_ACROSS)
                    *reinterpret_cast<Numbers*>(shared + (slice * DOWN + row_of(i)) * ACROSS + column_of(j)) = pack(i, j);
            __syncthreads();
            for (int i = threadIdx.x; i < DOWN * ACROSS / PACK_ACROSS; i += THREADS) {
                const int down = i * PACK_ACROSS / ACROSS, across = i * PACK_ACROSS % ACROSS;
                const Numbers read = ask(down, across);
                Numbers sum = {};
#pragma unroll 8
                for (int s = 0; s < SLICES; ++s) {
                    const auto part = *reinterpret_cast<Numbers*>(shared + s * DOWN * ACROSS + i * PACK_ACROSS);
                    for (int q = 0; q < PACK_ACROSS; ++q) sum.at[q] += part.at[q];
                }
                work(down, across, sum, read);
            }
        }
    }

    // The sum of B's column number threadIdx.x, for the first ACROSS threads.
    __device__ float columns(float* shared) {
        __syncthreads();
        shared[threadIdx.x] = column_sum;
        __syncthreads();
        float sum = 0.0f;
        for (int i = threadIdx.x % ACROSS; i < THREADS; i += ACROSS) sum += shared[i];
        return sum;
    }
};

// The sum over all threads of a block, in a fixed order.
__device__ inline float block_sum(float* shared, float value) {
    value = warp_sum(value);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0.0f;
    for (int warp = 0; warp < THREADS / 32; ++warp) sum += shared[warp];
    return sum;
}

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
            if (BEFORE == LINEAR || outside(m0 + m, ROWS, CUT.down) || outside(n0 + n, IN, CUT.across)) return Numbers{};
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
    gradient<0>(blockIdx.x, shared, arrays, x, BATCHED ? batches + step * ROWS : batches, factors + step * FACTORS, work);
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
