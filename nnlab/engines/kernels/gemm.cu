// Training steps of networks too wide for a block's shared memory, as a sequence of kernels over all rows: for each
// layer between the first and the last one product forward, two backward, each with what belongs to it done on the
// sums while they are in registers. first.cuh, last.cuh and update.cuh have the kernels around them.
//
// Level l is what lies between layer l - 1 and layer l: PADDED_ROWS x padded(l) words of activations, as many of
// dLoss/dz, and slopes where they need an array; dLoss/dz then takes their place, number by number. Padding does no
// harm: its weights are zero, and in rows past the last one dLoss/dz is zero.

// A product of rows (K numbers each) with a matrix: each block takes SIZE columns, which begin at `left`, and its
// teams take tiles of rows. Where the block's part of the matrix fits, it stays in shared memory; else its stages
// come with those of the rows.
template <int K, int SIZE>
struct RowProduct {
    using A = Along<ROW_TILE>;
    using B = Along<SIZE>;
    using Work = Product<A, B>;
    static constexpr int K_STAGES = K / DEPTH;
    static constexpr bool STAYS = 4 * (K * SIZE + TEAMS * STAGES * A::FLOATS + SIZE) <= SHARED_LIMIT;
    static constexpr int STAGE = A::FLOATS + (STAYS ? 0 : B::FLOATS), MATRIX = STAYS ? K * SIZE : 0;
    static constexpr int FLOATS = MATRIX + TEAMS * STAGES * STAGE + SIZE;
    // What lies under a tile's sums, where it is asked for, comes in so many more stages.
    static constexpr int PARTS = STAYS ? ROW_TILE * SIZE / STAGE : 2;
};

// Numbers under a tile's sums, brought by its pipeline: each stage has a PARTS-th of every warp's 64 rows, in strips
// of DEPTH columns.
template <int SIZE, int PARTS, int LENGTH>
struct Under {
    static constexpr int LINES = ROW_TILE / PARTS, OF_WARP = LINES / 2, STEP = TEAM / 8;
    __device__ static void copy(float* to, const float* corner, int part) {
        const int vector = threadIdx.x % 8;
#pragma unroll
        for (int i = 0; i < LINES; i += STEP) {
            const int line = i + threadIdx.x % TEAM / 8, row = line % OF_WARP + OF_WARP * part + line / OF_WARP * 64;
            copy_quads<SIZE / DEPTH, LINES * DEPTH, DEPTH>(to + Along<LINES>::at(line, vector),
                                                           corner + row * LENGTH + 4 * vector);
        }
    }
    __device__ static Pair read(const float* from, int row, int column) {
        const int line = row % OF_WARP + row / 64 * OF_WARP;
        from += column / DEPTH * LINES * DEPTH;
        return pair(from + Along<LINES>::at(line, column % DEPTH / 4) + column % 4);
    }
};

// Ask for the block's part of the matrix, if it stays; the pipelines' first stages follow, and it is waited for.
template <int K, int SIZE>
__device__ inline void ask_for_matrix(float* shared, const float* matrix) {
    using My = RowProduct<K, SIZE>;
    if constexpr (My::STAYS)
        for (int k = threadIdx.x / TEAM; k < My::K_STAGES; k += TEAMS)
            typename My::B::template Copier<K>(matrix + k * DEPTH).copy(shared + k * My::B::FLOATS);
    end_of_group();
}

// With many tiles before them, the second team begins half a tile later: then one team has the tensor cores while the
// other one works on its sums, where both would do the same at the same time. (By 4 % faster on an H200.)
__device__ inline void begin_apart(int team, int tiles_at_once) {
    if (team > 0 && TILES > 2 * tiles_at_once) __nanosleep(4000);
}

// Level L + 1 from level L: z = b + a W, and the activation. turned: W the other way around, an output a line.
template <int L>
__device__ void forward(const float* before, const float* turned, const float* bias, float* after, float* slopes) {
    constexpr int IN = padded(L), OUT = padded(L + 1), SIZE = tile(L + 1);
    using My = RowProduct<IN, SIZE>;
    extern __shared__ __align__(16) float shared[];
    const int left = blockIdx.x * SIZE, team = threadIdx.x / TEAM, tiles_at_once = gridDim.y * TEAMS;
    const int first = blockIdx.y * TEAMS + team;
    float* stages = shared + My::MATRIX + team * STAGES * My::STAGE;
    float* biases = shared + My::FLOATS - SIZE;
    ask_for_matrix<IN, SIZE>(shared, turned + left * IN);
    if (threadIdx.x < SIZE) biases[threadIdx.x] = bias[left + threadIdx.x];

    typename My::A::template Copier<IN> a(before + (long long)first * ROW_TILE * IN);
    typename My::B::template Copier<IN> b(turned + left * IN);
    int stage = 0, tile = first;
    auto copy = [&](float* to) {
        if (tile >= TILES) return;
        a.copy(to);
        if (!My::STAYS) b.copy(to + My::A::FLOATS);
        if (++stage < My::K_STAGES) return;
        stage = 0;
        tile += tiles_at_once;
        a.from += (long long)tiles_at_once * ROW_TILE * IN - IN;
        b.from -= IN;
    };
    Pipeline<My::STAGE, STAGES, false, decltype(copy)> pipeline(stages, copy);
    await_groups<STAGES - 1>();
    __syncthreads();
    begin_apart(team, tiles_at_once);
    typename My::Work product;
    for (int mine = first; mine < TILES; mine += tiles_at_once) {
        product.begin_with(biases);
        for (int k = 0; k < My::K_STAGES; ++k) {
            const float* arrived = pipeline.take();
            product.add(arrived, My::STAYS ? shared + k * My::B::FLOATS : arrived + My::A::FLOATS);
        }
        const long long corner = (long long)mine * ROW_TILE * OUT + left;
        product.for_each_pair([&](int row, int column, const float* z) {
            keep_all<L>(after + corner, slopes + corner, row * OUT + column, Pair{z[0], z[1]});
        });
    }
}

// dLoss/dz of layer L - 1 from that of layer L: (dz W^T) times the slope. under: where the slope is told, the words of
// level L or the slopes; `before` may be the same array. sums: each blockIdx.y leaves its own, for the gradient of the
// bias of layer L - 1.
template <int L>
__device__ void backward(const float* after, const float* weight, const float* under, float* before, const float* x,
                         const int* batch, float* sums) {
    constexpr int IN = padded(L), OUT = padded(L + 1), SIZE = tile(L);
    constexpr bool LAST_STOP = L == 1 && FEW_INPUTS;
    using My = RowProduct<OUT, SIZE>;
    using Slopes = Under<SIZE, My::PARTS, IN>;
    extern __shared__ __align__(16) float shared[];
    const int left = blockIdx.x * SIZE, team = threadIdx.x / TEAM, tiles_at_once = gridDim.y * TEAMS;
    const int first = blockIdx.y * TEAMS + team;
    float* stages = shared + My::MATRIX + team * STAGES * My::STAGE;
    ask_for_matrix<OUT, SIZE>(shared, weight + left * OUT);

    typename My::A::template Copier<OUT> a(after + (long long)first * ROW_TILE * OUT);
    typename My::B::template Copier<OUT> b(weight + left * OUT);
    int stage = 0, tile = first;
    auto copy = [&](float* to) {
        if (tile >= TILES) return;
        if (stage < My::K_STAGES) {
            a.copy(to);
            if (!My::STAYS) b.copy(to + My::A::FLOATS);
        } else {
            Slopes::copy(to, under + (long long)tile * ROW_TILE * IN + left, stage - My::K_STAGES);
        }
        if (++stage < My::K_STAGES + My::PARTS) return;
        stage = 0;
        tile += tiles_at_once;
        a.from += (long long)tiles_at_once * ROW_TILE * OUT - OUT;
        b.from -= OUT;
    };
    Pipeline<My::STAGE, STAGES, false, decltype(copy)> pipeline(stages, copy);
    await_groups<STAGES - 1>();
    __syncthreads();
    begin_apart(team, tiles_at_once);
    typename My::Work product;
    ColumnSums<typename My::Work, LAST_STOP ? INPUTS : 0> column_sums;
    for (int mine = first; mine < TILES; mine += tiles_at_once) {
        product.clear();
        for (int k = 0; k < My::K_STAGES; ++k) {
            const float* arrived = pipeline.take();
            product.add(arrived, My::STAYS ? shared + k * My::B::FLOATS : arrived + My::A::FLOATS);
        }
        float* corner = before + (long long)mine * ROW_TILE * IN + left;
#pragma unroll
        for (int part = 0; part < My::PARTS; ++part) {
            const float* arrived = pipeline.take();
            product.for_each_pair([&](int row, int column, float* gradient) {
                const Pair was = Slopes::read(arrived, row, column);
#pragma unroll
                for (int i = 0; i < 2; ++i) gradient[i] *= kept_slope<L - 1>(was.at[i]);
                if (!LAST_STOP) put(corner + row * IN + column, Pair{to_word(gradient[0]), to_word(gradient[1])});
            }, My::PARTS, part);
        }
        column_sums.add(product, x, batch, mine * ROW_TILE);
    }
    column_sums.store(shared, sums + blockIdx.y * column_sums.COUNT * IN + left, IN);
}

// The gradients a^T dz of the weights of layers as wide as L (blockIdx.z says which). Each blockIdx.y takes its share
// of the rows, and leaves its sums for the update to add up. The teams of a block have neighbouring tiles of the
// weight and share the stages of dz; or, where there is no neighbour, they share the rows, and the second team's sums
// are added to the first's.
struct Task { const float *before, *after; float* sums; };

template <int L>
__device__ void weights(const Task* tasks) {
    constexpr int IN = padded(L), OUT = padded(L + 1), HIGH = tile(L), WIDE = tile(L + 1), TILES_DOWN = IN / HIGH;
    constexpr bool NEIGHBOURS = TILES_DOWN % TEAMS == 0;
    constexpr long long STAGES_OF_ROWS = PADDED_ROWS / DEPTH;
    using A = Across<HIGH>;
    using B = Across<WIDE>;
    constexpr int STAGE = (NEIGHBOURS ? TEAMS : 1) * A::FLOATS + B::FLOATS;
    constexpr int BUFFERS = NEIGHBOURS ? TEAMS * STAGES * (A::FLOATS + B::FLOATS) / STAGE : STAGES;
    extern __shared__ __align__(16) float shared[];
    const Task task = tasks[blockIdx.z];
    const Place me;
    const int left = blockIdx.x % (OUT / WIDE) * WIDE, block = blockIdx.x / (OUT / WIDE);
    const int top = (NEIGHBOURS ? block * TEAMS + me.team : block) * HIGH;
    const int share = NEIGHBOURS ? blockIdx.y : blockIdx.y * TEAMS + me.team;
    const int shares = NEIGHBOURS ? gridDim.y : gridDim.y * TEAMS;
    const int first = STAGES_OF_ROWS * share / shares, end = STAGES_OF_ROWS * (share + 1) / shares;
    const long long row = first * DEPTH;
    typename A::template Copier<IN> a(task.before + row * IN + top);
    typename B::template Copier<OUT> b(task.after + row * OUT + left);
    const int mine_a = NEIGHBOURS ? me.team * A::FLOATS : 0, mine_b = STAGE - B::FLOATS;
    int asked = first;
    auto copy = [&](float* to) {
        if (asked++ >= end) return;
        a.copy(to + mine_a);
        if (NEIGHBOURS) {
            b.copy_share(to + mine_b);
        } else {
            b.copy(to + mine_b);
        }
    };
    float* stages = shared + (NEIGHBOURS ? 0 : me.team * STAGES * STAGE);
    Pipeline<STAGE, BUFFERS, NEIGHBOURS, decltype(copy)> pipeline(stages, copy);
    Product<A, B> product;
    for (int stage = first; stage < end; ++stage) {
        const float* arrived = pipeline.take();
        product.add(arrived + mine_a, arrived + mine_b);
    }
    if constexpr (!NEIGHBOURS) {
        __syncthreads();
        if (me.team > 0) product.leave(shared);
        __syncthreads();
        if (me.team > 0) return;
        product.add_left(shared);
    }
    float* corner = task.sums + (blockIdx.y * IN + top) * OUT + left;
    product.for_each_pair([&](int row, int column, const float* sums) {
        put(corner + row * OUT + column, Pair{sums[0], sums[1]});
    });
}

// A kernel for each layer that differs from the ones before; the plan lists them.
#define OF_PRODUCTS extern "C" __global__ void __launch_bounds__(TEAMS * TEAM, 1)
#define FORWARD(L)                                                                                              \
    OF_PRODUCTS forward_##L(const float* before, const float* turned, const float* bias, float* after,          \
                            float* slopes) {                                                                    \
        forward<L>(before, turned, bias, after, slopes);                                                        \
    }
#define BACKWARD(L)                                                                                             \
    OF_PRODUCTS backward_##L(const float* after, const float* weight, const float* under, float* before,        \
                             const float* x, const int* batch, float* sums) {                                   \
        backward<L>(after, weight, under, before, x, batch, sums);                                              \
    }
#define WEIGHTS(L) \
    OF_PRODUCTS weights_##L(const Task* tasks) { weights<L>(tasks); }
