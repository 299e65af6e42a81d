// Training as one kernel on the whole card, for batches of middling size. All blocks stay for many steps, and meet at a
// barrier three times in each:
//
//   first       values of level 1 from the input: tiles dealt out over the card
//   rows        a cluster takes its own rows through all other layers, forward, loss and back, a layer at a time
//   gradients   of all weights, each with its update: tiles dealt out over the card again
//
// A last layer of up to 32 outputs is taken by one block, 32 rows at a time, there and back.
//
// Constants beside those of network.cuh and mma.cuh: BLOCKS; FIRST_CUT and GRADIENT_CUTS (one a layer), how a product
// is dealt out: {tiles down, tiles across, blocks that share in k}; HEIGHT, of the groups of rows that a cluster takes,
// in tiles; FORWARD_ACROSS and BACK_ACROSS (one a layer), tiles across of the products in between; WORKSPACE, floats in
// device memory.

struct Cut { int down, across, sharers; };
__device__ constexpr Cut FIRST = FIRST_CUT, GRADIENT_CUT[] = {GRADIENT_CUTS};
__device__ constexpr int FORWARD[] = {FORWARD_ACROSS}, BACK[] = {BACK_ACROSS};

// ---- Products: operands, what to read ahead, what to do with the sums. `where`: a task, or a tile's two numbers.

template <int L>
using ForwardSums = Product<TALL, WIDTH[L + 1], value_stride(L), L == 0 ? FIRST.down : HEIGHT,
                            L == 0 ? FIRST.across : FORWARD[L], L == 0 ? FIRST.sharers : 1>;
template <int L>
using BackSums = Product<TALL, WIDTH[L], delta_stride(L + 1), HEIGHT, BACK[L], 1>;
template <int L>
using GradientSums = Product<units(L), WIDTH[L + 1], TALL, GRADIENT_CUT[L].down, GRADIENT_CUT[L].across,
                             GRADIENT_CUT[L].sharers>;

template <int L, typename... Where>
__device__ inline void forward(Step& step, Where... where) {
    ForwardSums<L>::run(
        where..., step.block.parts, step.block.queue, step.block.box, along(step.values<L>()),
        beside(step.weights<L>()),
        [&](int row, int unit) { return L == LAST ? step.fetch_targets(row, unit) : Quad(); },
        [&](int row, int unit, const Quad& z, const Quad& target) {
            if constexpr (L == LAST) step.lose_quad(row, unit, z, target);
            else step.put_values<L + 1>(row, unit, z);
        });
}

template <int L>  // the deltas of level L from those behind layer L
__device__ inline void back(Step& step, int down, int across) {
    BackSums<L>::run(
        down, across, step.block.parts, step.block.queue, step.block.box, along(step.deltas<L + 1>()),
        along(step.weights<L>()),
        [&](int row, int unit) { return step.fetch_slopes<L>(row, unit); },
        [&](int row, int unit, const Quad& sum, const Quad& known) { step.put_deltas<L>(row, unit, sum, known); });
}

template <int L>
__device__ inline void gradient(Step& step, int task) {
    GradientSums<L>::run(
        task, step.block.parts, step.block.queue, step.block.box, beside(step.values<L>()),
        beside(step.deltas<L + 1>()),
        [&](int unit, int n) { return step.fetch_parameters<L>(unit, n); },
        [&](int unit, int n, const Quad& sum, const Parameters& p) { step.put_parameters<L>(unit, n, sum, p); });
}

template <int L>  // the last layer: 32 rows through it and back
__device__ inline void through_narrow(Step& step, int down) {
    constexpr int DEPTH = divided_up(OUTPUTS, CHUNK);
    Block& block = step.block;
    const int first = down * SIDE, thread = thread_number(), lane = thread % 32;
    // A warp's part of what is needed on the way back is asked for before the way there.
    Quad weight[DEPTH][4], known[QUADS];
    auto fetch = [&](int n) {
        if (n >= WIDTH[L]) return;
        for (int k = 0; k < DEPTH; ++k)
            for (int q = 0; q < 4; ++q)
                weight[k][q] = read(step.weights<L>().row(n + 4 * (lane / 4) + q, 0) + k * CHUNK + 4 * (lane % 4));
        for (int u = 0; u < QUADS; ++u)
            known[u] = step.fetch_slopes<L>(first + quad_row(thread, u), n + quad_column(thread, u));
    };
    fetch(thread / 32 * SIDE);
    for (int i = thread; i < SIDE * CORNER; i += THREADS) block.corner[i] = 0.0f;
    Product<TALL, OUTPUTS, value_stride(L), 1, 1, 1>::run(
        down, 0, block.parts, block.queue, block.box, along(step.values<L>()), beside(step.weights<L>()),
        [&](int row, int unit) { return step.fetch_targets(row, unit); },
        [&](int row, int unit, const Quad& z, const Quad& target) {
            *reinterpret_cast<Quad*>(block.corner + (row - first) * CORNER + unit) =
                step.lose_quad(row, unit, z, target);
        });
    __syncthreads();
    for (int n = thread / 32 * SIDE; n < WIDTH[L]; n += WARPS * SIDE) {
        Sums sums = {};
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            Registers left, right;
            for (int q = 0; q < 4; ++q) {
                const Quad four = read(block.corner + (4 * (lane / 4) + q) * CORNER + k * CHUNK + 4 * (lane % 4));
                for (int i = 0; i < 4; ++i) {
                    left[q][i] = four.at[i];
                    right[q][i] = weight[k][q].at[i];
                }
            }
            multiply(sums, left, right);
        }
#pragma unroll
        for (int u = 0; u < QUADS; ++u) {
            const int row = first + quad_row(thread, u), unit = n + quad_column(thread, u);
            if ((TALL % SIDE == 0 || row < TALL) && (WIDTH[L] % SIDE == 0 || unit < WIDTH[L]))
                step.put_deltas<L>(row, unit, quad_of(sums, u), known[u]);
        }
        fetch(n + WARPS * SIDE);
    }
}

// ---- A step.

constexpr int CLUSTERS = BLOCKS / CLUSTER;

// The cluster's share of tasks. Between two, nobody may write to parts that another still adds up.
template <typename Work>
__device__ inline void share(int tasks, Work work) {
    for (int task = cluster_number(); task < tasks; task += CLUSTERS) {
        if (task >= CLUSTERS) cluster_barrier();
        work(task);
    }
}
// The block's share of a cluster's tiles.
template <typename Work>
__device__ inline void share_tiles(int tiles, Work work) {
    for (int tile = cluster_rank(); tile < tiles; tile += CLUSTER) {
        if (tile >= CLUSTER) __syncthreads();
        work(tile);
    }
}

// A cluster's rows through layer L and those after it, and back to level L.
template <int L>
__device__ inline void take_rows(Step& step, int group) {
    if constexpr (L == LAST && NARROW) {
        share_tiles(HEIGHT, [&](int i) {
            if ((group * HEIGHT + i) * SIDE < TALL) through_narrow<L>(step, group * HEIGHT + i);
        });
    } else {
        share_tiles(ForwardSums<L>::TILES_ACROSS, [&](int across) { forward<L>(step, group, across); });
        cluster_barrier();
        if constexpr (L < LAST) {
            take_rows<L + 1>(step, group);
            cluster_barrier();
        }
        share_tiles(BackSums<L>::TILES_ACROSS, [&](int across) { back<L>(step, group, across); });
    }
}

template <int L>
__host__ __device__ constexpr int gradient_tasks() {  // of layer L and those after it
    if constexpr (L < LAST) return GradientSums<L>::TASKS + gradient_tasks<L + 1>();
    else return GradientSums<L>::TASKS;
}
template <int L>
__device__ inline void gradients(Step& step, int task) {
    if (task < GradientSums<L>::TASKS) gradient<L>(step, task);
    else if constexpr (L < LAST) gradients<L + 1>(step, task - GradientSums<L>::TASKS);
}

__device__ inline void take(Step& step, GridBarrier& barrier) {
    share(ForwardSums<0>::TASKS, [&](int task) { forward<0>(step, task); });
    if constexpr (LAST > 0) {
        barrier.wait();
        for (int group = cluster_number(); group * HEIGHT * SIDE < TALL; group += CLUSTERS) {
            if (group >= CLUSTERS) cluster_barrier();
            take_rows<1>(step, group);
        }
    }
    step.hand_in_terms();
    barrier.wait();
    step.add_loss();
    share(gradient_tasks<0>(), [&](int task) { gradients<0>(step, task); });
    barrier.wait();
}

// `steps` training steps. memory: WORKSPACE floats, zeros before the first launch. counts: of the barrier, what it has
// reached and what it had when the launch before ended. batches: the row numbers of every step, one after another
// (BATCHED). factors: FACTORS numbers a step. losses: each step's loss, before its update.
extern "C" __global__ void IN_CLUSTER __launch_bounds__(THREADS, 1)
loop_grid(float* const* arrays, float* memory, unsigned* counts, const float* x, const float* y, int all_rows,
          const int* batches, const float* factors, float* losses, int steps) {
    SHARED_MEMORY(shared);
    Block& block = *reinterpret_cast<Block*>(shared);
    if (steps == 0) return;
    if (CLUSTER > 1 && threadIdx.x == 0) open_mailbox(block.box);
    GridBarrier barrier{counts, counts[1]};
    auto load_rows = [&](int step) {
        if constexpr (BATCHED)
            for (int r = threadIdx.x; r < TABLE; r += THREADS)
                block.rows[step % TABLES][r] = r < ROWS ? batches[size_t(step) * ROWS + r] : all_rows;
    };
    exchange<false, 0>(memory, arrays);
    load_rows(0);
    barrier.wait();

    for (int step = 0; step < steps; ++step) {
        Step now{block, memory, x, y, block.rows[step % TABLES], losses + step};
        for (int k = 0; k < FACTORS; ++k) now.factor[k] = factors[step * FACTORS + k];
        if (TABLES == 2 && step + 1 < steps) load_rows(step + 1);
        take(now, barrier);
        if (BATCHED && TABLES == 1 && step + 1 < steps) {
            load_rows(step + 1);
            __syncthreads();
        }
    }
    exchange<true, 0>(memory, arrays);
    if (blockIdx.x == 0 && threadIdx.x == 0) counts[1] = barrier.target;
}
