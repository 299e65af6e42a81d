// What a block of loop_grid.cu knows of a training step, and what becomes of the sums that its products finish.

constexpr bool NARROW = OUTPUTS <= SIDE && LAYERS > 1;  // a block can take whole rows through the last layer
constexpr int CORNER = SIDE + 4;                        // row stride of a 32 x 32 piece in shared memory

constexpr int TABLE = BATCHED ? rounded_up(ROWS, 4 * SIDE) : 1;  // as many rows as the tallest tiles reach
constexpr int TABLES = TABLE <= 2048 ? 2 : 1;                    // with room for two, the next step's is read early

struct Block {
    alignas(16) float queue[QUEUED * STRIP];
    Quad parts[WARPS * QUADS * 32];
    alignas(16) float corner[SIDE * CORNER];
    Mailbox box;
    float terms[WARPS];
    int rows[TABLES][TABLE];  // which rows of x and y
};
static_assert(sizeof(Block) <= SHARED_BYTES, "the plan asked for too little shared memory");

struct Parameters { Quad of[ARRAYS]; };  // four weights and their memories

template <typename From>
__device__ inline Along<From> along(From from) { return {from}; }
template <typename From>
__device__ inline Beside<From> beside(From from) { return {from}; }

struct Step {
    Block& block;
    float* memory;
    const float *x, *y;  // x: ones behind the inputs, and rows of zeros at the end
    const int* chosen;   // row numbers of this step (BATCHED)
    float* loss;
    float factor[FACTORS] = {};
    float term = 0.0f;  // this thread's part of the loss

    template <int L>
    __device__ auto values() const {
        if constexpr (L > 0) return Rows<value_stride(L)>{memory + begin(VALUES, L)};
        else if constexpr (BATCHED) return ChosenRows<value_stride(0)>{x, chosen};
        else return Rows<value_stride(0)>{x};
    }
    template <int L>
    __device__ auto deltas() const { return Rows<delta_stride(L)>{memory + begin(DELTAS, L)}; }
    template <int L>
    __device__ auto weights() const { return Rows<delta_stride(L + 1)>{memory + begin(OPERANDS, L)}; }
    template <int L>
    __device__ float* delta(int row, int unit) const {
        return memory + begin(DELTAS, L) + row * delta_stride(L) + unit;
    }
    template <int L>
    __device__ float* slopes(int row, int unit) const {
        return memory + begin(SLOPES, L) + row * value_stride(L) + unit;
    }
    template <int L>
    __device__ float* parameters(int k, int unit, int n) const {  // k: 0 the weight, then its memories
        return memory + begin(WEIGHTS, L) + (k * value_stride(L) + unit) * delta_stride(L + 1) + n;
    }

    // ---- What becomes of finished sums, four of a row at a time.

    template <int L>  // values of level L
    __device__ void put_values(int row, int unit, const Quad& z) const {
        float* place = memory + begin(VALUES, L) + row * value_stride(L) + unit;
        Quad a, its_slope;
        for (int i = 0; i < 4; ++i) {
            activate<L - 1>(z.at[i], a.at[i], its_slope.at[i]);
            a.at[i] = to_word(a.at[i]);
        }
        if (ROWS % CHUNK && row >= ROWS) return;
        if (WIDTH[L] % 4 == 0 || unit + 4 <= WIDTH[L]) {
            *reinterpret_cast<Quad*>(place) = a;
        } else {  // what lies behind the last unit stays
            for (int i = 0; i < 4; ++i)
                if (unit + i < WIDTH[L]) place[i] = a.at[i];
        }
        if constexpr (keeps_slope(L)) *reinterpret_cast<Quad*>(slopes<L>(row, unit)) = its_slope;
    }
    __device__ Quad fetch_targets(int row, int unit) const {
        Quad found = {};
        const float* of_row = y + size_t(BATCHED ? chosen[row] : row) * OUTPUTS;
        for (int i = 0; i < 4; ++i)
            if ((ROWS % CHUNK == 0 || row < ROWS) && unit + i < OUTPUTS) found.at[i] = of_row[unit + i];
        return found;
    }
    __device__ Quad lose_quad(int row, int unit, const Quad& z, const Quad& target) {  // and dLoss/dz of the last layer
        Quad delta = {};
        for (int i = 0; i < 4; ++i) {
            if ((ROWS % CHUNK && row >= ROWS) || unit + i >= OUTPUTS) continue;
            float a, its_slope, its_term, gradient;
            activate<LAST>(z.at[i], a, its_slope);
            lose(a, target.at[i], its_term, gradient);
            term += its_term;
            delta.at[i] = to_word(gradient * its_slope);
        }
        *reinterpret_cast<Quad*>(this->delta<LAYERS>(row, unit)) = delta;
        return delta;
    }
    template <int L>
    __device__ Quad fetch_slopes(int row, int unit) const {  // or the values that tell them
        return read(keeps_slope(L) ? slopes<L>(row, unit) : values<L>().row(row, 0) + unit);
    }
    template <int L>
    __device__ void put_deltas(int row, int unit, const Quad& sum, const Quad& known) const {
        Quad delta;
        for (int i = 0; i < 4; ++i)
            delta.at[i] = WIDTH[L] % 4 && unit + i >= WIDTH[L] ? 0.0f
                : to_word(sum.at[i] * (keeps_slope(L) ? known.at[i] : slope_at<L - 1>(from_word(known.at[i]))));
        *reinterpret_cast<Quad*>(this->delta<L>(row, unit)) = delta;
    }
    template <int L>
    __device__ Parameters fetch_parameters(int unit, int n) const {
        Parameters found;
        for (int k = 0; k < ARRAYS; ++k) found.of[k] = read(parameters<L>(k, unit, n));
        return found;
    }
    template <int L>
    __device__ void put_parameters(int unit, int n, const Quad& gradient, Parameters p) const {
        float none = 0.0f;
        for (int i = 0; i < 4; ++i)
            update(factor, gradient.at[i], p.of[0].at[i], MEMORIES > 0 ? p.of[ARRAYS > 1].at[i] : none,
                   MEMORIES > 1 ? p.of[ARRAYS - 1].at[i] : none);
        for (int k = 0; k < ARRAYS; ++k) *reinterpret_cast<Quad*>(parameters<L>(k, unit, n)) = p.of[k];
        if constexpr (PRODUCTS == 1) {
            Quad words;
            for (int i = 0; i < 4; ++i) words.at[i] = to_word(p.of[0].at[i]);
            *reinterpret_cast<Quad*>(memory + begin(OPERANDS, L) + unit * delta_stride(L + 1) + n) = words;
        }
    }

    // The block's part of the loss; after a barrier, the last block adds up all parts.
    __device__ void hand_in_terms() const {
        const float sum = warp_sum(term);
        if (threadIdx.x % 32 == 0) block.terms[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x > 0) return;
        float all = 0.0f;
        for (int warp = 0; warp < WARPS; ++warp) all += block.terms[warp];
        memory[begin(TERMS, 0) + blockIdx.x] = all;
    }
    __device__ void add_loss() const {
        if (blockIdx.x < BLOCKS - 1 || threadIdx.x < THREADS - 32) return;
        float sum = 0.0f;
        for (int i = threadIdx.x % 32; i < BLOCKS; i += 32) sum += memory[begin(TERMS, 0) + i];
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0) *loss = sum * SHARE;
    }
};
