
// What a block of loop_weights.cu holds in shared memory, and the two things it does with its weights: products with
// values, and updates.

constexpr int SPAN = ROWS > 1 ? 4 : 1;                  // rows a thread works on at a time
constexpr int TALL = rounded_up(ROWS, SPAN);            // rows, filled up with rows of zeros that count for nothing
constexpr int WARPS = THREADS / 32;

__host__ __device__ constexpr int own(int l) {          // units a block works out of level l; a multiple of 4
    return l == LAYERS ? rounded_up(OUTPUTS, 4) : rounded_up(rounded_up(WIDTH[l], CLUSTER) / CLUSTER, 4);
}
__host__ __device__ constexpr int value_stride(int l) { return odd_quads(WIDTH[l] + 1); }
__host__ __device__ constexpr int delta_stride(int l) { return odd_quads(WIDTH[l]); }

// Where things begin in shared memory, in floats. What must not be there has no size.
enum Part { COLUMNS, LINES, VALUES, DELTAS, SLOPES, MINE };
__host__ __device__ constexpr int size(Part part, int l) {
    switch (part) {
        case COLUMNS: return l < LAYERS ? own(l + 1) * value_stride(l) : 0;            // of layer l
        case LINES: return l >= 1 && l < LAYERS ? own(l) * delta_stride(l + 1) : 0;     // of layer l
        case VALUES: return l < LAYERS && (l > 0 || X_SHARED) ? TALL * value_stride(l) : 0;  // of level l, all units
        case DELTAS: return l >= 2 ? TALL * delta_stride(l) : 0;                        // of level l, all units
        default: return l >= 1 && l < LAYERS ? TALL * own(l) : 0;                       // slopes or deltas: own units
    }
}
__host__ __device__ constexpr int begin(Part part, int level) {
    int at = 0;
    for (int p = COLUMNS; p <= part; ++p)
        for (int l = 0; l <= (p < part ? LAYERS : level - 1); ++l) at += size(Part(p), l);
    return at;
}
constexpr int WEIGHTS = begin(VALUES, 0);               // all columns and rows: what is trained
constexpr int BUFFERS = begin(MINE, LAYERS + 1);

// ---- A product of lines (unit by unit) with values (row by row): for every row and unit a sum over LENGTH.

// Threads are dealt to tiles of 4 units and SPAN rows; threads of one tile share the sum.
template <int UNITS>
struct Tiles {
    static constexpr int ACROSS = UNITS / 4, COUNT = ACROSS * (TALL / SPAN);
    __host__ __device__ static constexpr int lanes() {  // threads side by side that have different tiles
        int lanes = 1;
        while (lanes < COUNT) lanes *= 2;
        return lanes;
    }
    static constexpr int LANES = lanes(), SHARERS = THREADS / LANES;
    static constexpr int PARTS = LANES < 32 ? WARPS : SHARERS;  // sums that are left after those of a warp are added
    static_assert(LANES <= THREADS, "too many units for the threads of a block");
};

__host__ __device__ constexpr int scratch_size() {
    int most = 0;
    for (int l = 1; l <= LAYERS; ++l) {
        int lanes = 1;
        while (lanes < own(l) / 4 * (TALL / SPAN)) lanes *= 2;
        int parts = lanes < 32 ? WARPS : THREADS / lanes, floats = parts * TALL * own(l);
        most = floats > most ? floats : most;
    }
    return most;
}

struct Block {
    alignas(16) float memory[BUFFERS];
    alignas(16) float scratch[scratch_size()];
    alignas(16) float targets[TALL * own(LAYERS)];
    alignas(16) float terms[TALL * own(LAYERS)];
    int rows[TALL];                                     // which rows of x and y this step takes
};

static_assert(sizeof(Block) <= SHARED_BYTES, "the plan asked for too little shared memory");

// row(r): where row r of the values begins. Leaves PARTS partial sums in the scratch, [part][row][unit].
template <int UNITS, int LENGTH, int STRIDE, typename Row>
__device__ inline void product(Block& block, const float* lines, Row row) {
    using T = Tiles<UNITS>;
    const int lane = threadIdx.x % T::LANES, sharer = threadIdx.x / T::LANES, tile = min(lane, T::COUNT - 1);
    const int unit = tile % T::ACROSS, span = tile / T::ACROSS;  // units and rows of a tile are interleaved
    float sum[4][SPAN] = {};
    const float* value[SPAN];
    for (int r = 0; r < SPAN; ++r) value[r] = row(span + r * (TALL / SPAN));
#pragma unroll 2
    for (int k = 4 * sharer; k < LENGTH; k += 4 * T::SHARERS) {
        Quad v[SPAN];
        for (int r = 0; r < SPAN; ++r) v[r] = *reinterpret_cast<const Quad*>(value[r] + k);
        for (int u = 0; u < 4; ++u) {
            Quad w = *reinterpret_cast<const Quad*>(lines + (unit + u * T::ACROSS) * STRIDE + k);
            for (int r = 0; r < SPAN; ++r)
                for (int i = 0; i < 4; ++i) sum[u][r] += w.at[i] * v[r].at[i];
        }
    }
    for (int offset = T::LANES; offset < 32; offset *= 2)
        for (int u = 0; u < 4; ++u)
            for (int r = 0; r < SPAN; ++r) sum[u][r] += __shfl_xor_sync(0xffffffffu, sum[u][r], offset);
    const int part = threadIdx.x / (T::LANES < 32 ? 32 : T::LANES);
    if (lane == tile && (T::LANES >= 32 || threadIdx.x % 32 < T::LANES))
        for (int u = 0; u < 4; ++u)
            for (int r = 0; r < SPAN; ++r)
                block.scratch[(part * TALL + span + r * (TALL / SPAN)) * UNITS + unit + u * T::ACROSS] = sum[u][r];
    __syncthreads();
}

// Calls work(row, unit, sum, part, parts) for every finished sum; `parts` threads get the same one and share what
// follows from it.
template <int UNITS, typename Work>
__device__ inline void for_each_sum(Block& block, Work work) {
    constexpr int SUMS = TALL * UNITS, SHARING = SUMS < THREADS ? THREADS / SUMS : 1;
    for (int i = threadIdx.x; i < SUMS * SHARING; i += THREADS) {
        int place = i % SUMS;
        float sum = 0.0f;
        for (int part = 0; part < Tiles<UNITS>::PARTS; ++part) sum += block.scratch[part * SUMS + place];
        work(place / UNITS, place % UNITS, sum, i / SUMS, SHARING);
    }
}

// ---- The update of lines from sums over the rows of left (a unit's) times right.

struct Optimizer {
    float factor[FACTORS];
    float* memories;  // of this block, in device memory: MEMORIES times WEIGHTS, placed as the weights are
};

// left(r, u): four units of row r from unit u on; right(r): all of row r.
// `start`: the first thread to take part, so that updates which follow one another keep different threads busy.
// Returns where the next one should start.
template <int UNITS, int LENGTH, int STRIDE, typename Left, typename Right>
__device__ inline int update_lines(Block& block, int lines, Left left, Right right, const Optimizer& optimizer,
                                   int start) {
    constexpr int QUADS = rounded_up(LENGTH, 4) / 4;
    constexpr int GROUP = UNITS % 8 == 0 && UNITS / 4 * QUADS > THREADS ? 8 : 4;  // units a thread takes at a time
    constexpr int ITEMS = UNITS / GROUP * QUADS;
    for (int item = (int(threadIdx.x) + THREADS - start % THREADS) % THREADS; item < ITEMS; item += THREADS) {
        const int k = item % QUADS * 4, unit = item / QUADS * GROUP;
        Quad sum[GROUP] = {};
#pragma unroll 4
        for (int r = 0; r < ROWS; ++r) {
            Quad v = *reinterpret_cast<const Quad*>(right(r) + k);
            for (int group = 0; group < GROUP; group += 4) {
                Quad l = *reinterpret_cast<const Quad*>(left(r, unit + group));
                for (int u = 0; u < 4; ++u)
                    for (int i = 0; i < 4; ++i) sum[group + u].at[i] += l.at[u] * v.at[i];
            }
        }
        for (int u = 0; u < GROUP; ++u) {
            const int at = lines + (unit + u) * STRIDE + k;
            Quad w = *reinterpret_cast<Quad*>(block.memory + at), m = {}, v = {};
            Quad* first = reinterpret_cast<Quad*>(optimizer.memories + at);
            Quad* second = reinterpret_cast<Quad*>(optimizer.memories + WEIGHTS + at);
            if constexpr (MEMORIES > 0) m = *first;
            if constexpr (MEMORIES > 1) v = *second;
            for (int i = 0; i < 4; ++i)
                update(optimizer.factor, sum[u].at[i], w.at[i], m.at[i], v.at[i]);
            *reinterpret_cast<Quad*>(block.memory + at) = w;
            if constexpr (MEMORIES > 0) *first = m;
            if constexpr (MEMORIES > 1) *second = v;
        }
    }
    return start + ITEMS;
}

