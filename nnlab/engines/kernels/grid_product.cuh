// A product C = A B dealt out over the card: a warp adds up 32 x 32 sums over its part of k, on the tensor cores; the
// parts are then added, in a fixed order, in shared memory, also across the blocks of a cluster.

__device__ inline int cluster_number() { return blockIdx.x / CLUSTER; }
__device__ inline int cluster_rank() { return blockIdx.x % CLUSTER; }

// M x N sums over K. A block has DOWN x ACROSS of its warps beside one another: a tile. Warps left over, and SHARERS
// blocks (one, or all of a cluster), share in k. Tiles are counted downwards first.
template <int M, int N, int K, int DOWN, int ACROSS, int SHARERS>
struct Product {
    static constexpr int TILES_DOWN = divided_up(M, SIDE * DOWN), TILES_ACROSS = divided_up(N, SIDE * ACROSS);
    static constexpr int TASKS = divided_up(TILES_DOWN * TILES_ACROSS, CLUSTER / SHARERS);  // for the clusters
    static constexpr int WIDE = DOWN * ACROSS, SLICES = WARPS / WIDE, PARTS = SLICES * SHARERS;
    static constexpr int CHUNKS = divided_up(K, CHUNK);
    // Chunks that a warp takes in a round.
    static constexpr int DEPTH = CHUNKS > PARTS && 4 * (DOWN + ACROSS) * SLICES <= QUEUED ? 2 : 1;
    static constexpr int ROUNDS = divided_up(CHUNKS, PARTS * DEPTH);
    static constexpr int OWN = QUADS / SHARERS;  // of a lane's quads that a block finishes
    static constexpr int PLACES = WIDE * OWN * 32, ITEMS = divided_up(PLACES, THREADS);
    static_assert(SHARERS == 1 || SHARERS == CLUSTER, "a sum is shared by all blocks of a cluster or by none");
    static_assert(WARPS % WIDE == 0, "as many warps for each part of a tile");

    // The cluster's share of tiles number `task`.
    template <typename... Rest>
    __device__ static void run(int task, Quad* parts, float* queue, Mailbox& box, const Rest&... rest) {
        const int which = SHARERS > 1 ? task : task * CLUSTER + cluster_rank();
        if (which < TILES_DOWN * TILES_ACROSS) run(which % TILES_DOWN, which / TILES_DOWN, parts, queue, box, rest...);
    }

    // For every four finished sums in M x N: fetch(m, n) reads what will be wanted, long before
    // work(m, n, sums, fetched) is called.
    template <typename A, typename B, typename Fetch, typename Work>
    __device__ static void run(int tile_down, int tile_across, Quad* parts, float* queue, Mailbox& box,
                               const A& a, const B& b, Fetch fetch, Work work) {
        const int share = SHARERS > 1 ? cluster_rank() : 0;
        const int thread = thread_number(), warp = thread / 32, tile = warp % WIDE, slice = warp / WIDE;
        const int down = tile_down * SIDE * DOWN, across = tile_across * SIDE * ACROSS;
        const int m = down + tile % DOWN * SIDE, n = across + tile / DOWN * SIDE;

        constexpr bool SHARED = PARTS > 1, ROWS_FIT = M % (SIDE * DOWN) == 0, COLUMNS_FIT = N % (SIDE * ACROSS) == 0;
        constexpr int MINE = SHARED ? ITEMS : QUADS;  // quads that this thread finishes
        decltype(fetch(0, 0)) known[MINE];
        // work(i, row, column) for each of these that lies in M x N.
        auto for_each = [&](auto work) {
#pragma unroll
            for (int i = 0; i < MINE; ++i) {
                const int place = i * THREADS + thread, its = SHARED ? place / 32 / OWN : tile;
                const int u = SHARED ? share * OWN + place / 32 % OWN : i;
                const int row = down + its % DOWN * SIDE + quad_row(thread, u);
                const int column = across + its / DOWN * SIDE + quad_column(thread, u);
                if ((!SHARED || PLACES % THREADS == 0 || place < PLACES) && (ROWS_FIT || row < M) &&
                    (COLUMNS_FIT || column < N))
                    work(i, row, column);
            }
        };
        auto fetch_all = [&] { for_each([&](int i, int row, int column) { known[i] = fetch(row, column); }); };
        constexpr bool EARLY = sizeof(known) <= 64;  // as far as registers allow

        unsigned letters = 0;
        if constexpr (SHARERS > 1) {
            letters = box.letters;
            if (thread == 0) expect_mail(box, PARTS * PLACES * int(sizeof(Quad)));
        }
        if constexpr (EARLY) fetch_all();
        Sums sums = {};
        constexpr int STRIPS = (DOWN + ACROSS) * SLICES * DEPTH, STAGES = QUEUED / STRIPS;
        constexpr int AHEAD = ROUNDS <= STAGES ? ROUNDS : STAGES - 1;  // where all fit, nothing is overwritten
        constexpr bool ALL = CHUNKS % (PARTS * DEPTH) == 0;
        static_assert(STAGES > 1, "one round is copied while another is multiplied");
        const bool inside = (ROWS_FIT || m < M) && (COLUMNS_FIT || n < N);
        const float* left_strip = queue + (slice * DEPTH * DOWN + tile % DOWN) * STRIP;
        const float* right_strip = queue + ((DOWN * SLICES + slice * ACROSS) * DEPTH + tile / DOWN) * STRIP;
        int coming = 0, here = 0;  // stages
#pragma unroll 1
        for (int round = -AHEAD; round < ROUNDS; ++round) {
            if (round >= 0) {
                await_groups<AHEAD - 1>();
                __syncthreads();  // this round's strips are there, and nobody reads those of the round before any more
            }
            if (round + AHEAD < ROUNDS) {
                const int chunk = ((round + AHEAD) * PARTS + share * SLICES) * DEPTH;
                float* strips = queue + coming * STRIPS * STRIP;
                copy_strips<DOWN, SLICES * DEPTH, ALL>(thread, strips, a, down, chunk, CHUNKS);
                copy_strips<ACROSS, SLICES * DEPTH, ALL>(thread, strips + DOWN * SLICES * DEPTH * STRIP, b, across,
                                                         chunk, CHUNKS);
                coming = coming + 1 < STAGES ? coming + 1 : 0;
            }
            end_of_group();
            if (round < 0) continue;
            const int first = (round * PARTS + share * SLICES + slice) * DEPTH;
#pragma unroll
            for (int i = 0; i < DEPTH; ++i) {
                if (!inside || !(ALL || first + i < CHUNKS)) break;
                Registers left, right;
                A::take(left, left_strip + (here * STRIPS + i * DOWN) * STRIP);
                B::take(right, right_strip + (here * STRIPS + i * ACROSS) * STRIP);
                multiply(sums, left, right);
            }
            here = here + 1 < STAGES ? here + 1 : 0;
        }
        if constexpr (!EARLY) fetch_all();
        if constexpr (SHARED) {
#pragma unroll
            for (int u = 0; u < QUADS; ++u) {
                Quad* place = parts + (((share * SLICES + slice) * WIDE + tile) * OWN + u % OWN) * 32 + thread % 32;
                if constexpr (SHARERS > 1) mail(place, box, u / OWN, quad_of(sums, u));
                else *place = quad_of(sums, u);
            }
            if constexpr (SHARERS > 1) {
                await_mail(box, letters);
                if (thread == 0) box.letters = letters + 1;
            } else {
                __syncthreads();
            }
        }
        for_each([&](int i, int row, int column) {
            Quad sum;
            if constexpr (SHARED) {
                sum = parts[i * THREADS + thread];
                for (int part = 1; part < PARTS; ++part)
                    for (int j = 0; j < 4; ++j) sum.at[j] += parts[part * PLACES + i * THREADS + thread].at[j];
            } else {
                sum = quad_of(sums, i);
            }
            work(row, column, sum, known[i]);
        });
    }
};
