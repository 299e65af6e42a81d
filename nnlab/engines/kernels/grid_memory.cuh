// Where loop_grid.cu keeps things in device memory.
//
// Level 0 is the input, level l the output of layer l - 1. Values, slopes, deltas (dLoss/dz) have a row for each row of
// the batch; a weight has a row for each unit of the level before it, and one for its bias, which is the weight of one
// more unit whose value is always 1. Rows are padded with zeros to whole chunks, and change no result.

__host__ __device__ constexpr int units(int level) { return WIDTH[level] + (level < LAYERS ? BIAS[level] : 0); }
__host__ __device__ constexpr int value_stride(int level) { return rounded_up(units(level), CHUNK); }
__host__ __device__ constexpr int delta_stride(int level) { return rounded_up(WIDTH[level], CHUNK); }
__host__ __device__ constexpr bool keeps_slope(int level) { return ACTIVATION[level - 1] == SINE; }
constexpr int TALL = rounded_up(ROWS, CHUNK);

enum Part { WEIGHTS, WORDS, VALUES, SLOPES, DELTAS, TERMS, SPARE };
__host__ __device__ constexpr int size(Part part, int l) {
    switch (part) {
        case WEIGHTS: return l < LAYERS ? ARRAYS * value_stride(l) * delta_stride(l + 1) : 0;  // layer l, its memories
        case WORDS: return l < LAYERS && PRODUCTS == 1 ? value_stride(l) * delta_stride(l + 1) : 0;  // of TF32
        case VALUES: return l > 0 && l < LAYERS ? TALL * value_stride(l) : 0;
        case SLOPES: return l > 0 && l < LAYERS && keeps_slope(l) ? TALL * value_stride(l) : 0;
        case DELTAS: return l > 0 ? TALL * delta_stride(l) : 0;
        case TERMS: return l == 0 ? rounded_up(BLOCKS, CHUNK) : 0;  // of the loss, one from each block
        default: return 4 * SIDE * value_stride(l);  // tiles may reach so far behind the rest
    }
}
__host__ __device__ constexpr int begin(Part part, int level) {
    int at = 0;
    for (int p = WEIGHTS; p <= part; ++p)
        for (int l = 0; l <= (p < part ? LAYERS : level - 1); ++l) at += size(Part(p), l);
    return at;
}
constexpr Part OPERANDS = PRODUCTS == 1 ? WORDS : WEIGHTS;  // what the products read of a layer
static_assert(begin(SPARE, LAYERS + 1) == WORKSPACE, "the plan counts the same floats");

__host__ __device__ constexpr int tensor(int layer) {  // number of the layer's weight among the model's tensors
    int at = 0;
    for (int l = 0; l < layer; ++l) at += 1 + BIAS[l];
    return at;
}

// Read (or write back) layer L and those after it. arrays: for each tensor of the model, its address and those of its
// memories.
template <bool WRITE, int L>
__device__ void exchange(float* memory, float* const* arrays) {
    constexpr int IN = WIDTH[L], OUT = WIDTH[L + 1], STRIDE = delta_stride(L + 1), SIZE = value_stride(L) * STRIDE;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < units(L) * OUT; i += BLOCKS * THREADS) {
        const int k = i / OUT, unit = i % OUT;
        for (int one = 0; one < ARRAYS; ++one) {
            float& here = memory[begin(WEIGHTS, L) + one * SIZE + k * STRIDE + unit];
            float& there = arrays[(tensor(L) + (k == IN)) * ARRAYS + one][k == IN ? unit : i];
            if constexpr (WRITE) there = here;
            else here = there;
        }
        if constexpr (!WRITE && PRODUCTS == 1)
            memory[begin(WORDS, L) + k * STRIDE + unit] = to_word(memory[begin(WEIGHTS, L) + k * STRIDE + unit]);
    }
    if constexpr (!WRITE && L > 0 && BIAS[L])
        for (int row = blockIdx.x * THREADS + threadIdx.x; row < ROWS; row += BLOCKS * THREADS)
            memory[begin(VALUES, L) + row * value_stride(L) + IN] = 1.0f;
    if constexpr (L < LAST) exchange<WRITE, L + 1>(memory, arrays);
}
