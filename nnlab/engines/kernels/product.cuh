// A product of two matrices, shared out among blocks and their threads.

// Each block makes down x across numbers of a product, `depth` terms at a time, and each of its threads
// thread_down x thread_across. What threads are left over share the terms, and their sums are added up in the end.
struct Cut { int down, across, depth, thread_down, thread_across; };

__host__ __device__ constexpr int pieces(int n, int size) { return (n + size - 1) / size; }

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
    // Where rows are turned around, two lanes share a row and eight rows are taken together: whole sectors of memory
    // are read, and at most two lanes at a time write to the same bank.
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
                    *reinterpret_cast<Numbers*>(shared + (slice * DOWN + row_of(i)) * ACROSS + column_of(j)) =
                        pack(i, j);
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
