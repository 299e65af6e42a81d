// The last layer, whose outputs are few, the loss, and dLoss/dz of the layer before (over the slopes, where they have
// an array). A warp takes a row, each lane two columns of every 64. Each block leaves LAST_WIDTH sums of the weight's
// gradient for each output and as many of dLoss/dz of the layer before, for its bias; the outputs' for their bias;
// and its share of the loss.
constexpr int LAST_WIDTH = padded(LAST), PAIRS = LAST_WIDTH / 64;
constexpr int HEAD_SUMS = (OUTPUTS + 1) * LAST_WIDTH + OUTPUTS + 1;

struct HeadRow {
    Pair words[PAIRS], slopes[has_slopes(LAST - 1) ? PAIRS : 1];
    float targets[OUTPUTS];
};

OF_ENDS head(const float* y, const int* batch, const float* weight, const float* bias, const float* before,
             const float* slopes, float* deltas, float* sums) {
    extern __shared__ __align__(16) float shared[];  // the weight, an output a line; later the sums
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int i = threadIdx.x; i < OUTPUTS * LAST_WIDTH; i += END_THREADS)
        shared[i] = weight[i % LAST_WIDTH * OUTPUTS + i / LAST_WIDTH];
    __syncthreads();
    float weight_sums[OUTPUTS + 1][PAIRS][2] = {}, bias_sums[OUTPUTS] = {}, loss = 0.0f;
    HeadRow mine, next;  // the next row is on its way while this one is worked on
    auto read = [&](int row) {
        const long long at = (long long)row * LAST_WIDTH + 2 * lane;
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) next.words[i] = pair(before + at + 64 * i);
        if constexpr (has_slopes(LAST - 1))
#pragma unroll
            for (int i = 0; i < PAIRS; ++i) next.slopes[i] = pair(slopes + at + 64 * i);
        const long long from = source_row(batch, min(row, ROWS - 1)) * OUTPUTS;
#pragma unroll
        for (int o = 0; o < OUTPUTS; ++o) next.targets[o] = y[from + o];
    };
    const int step = gridDim.x * WARPS;
    int row = blockIdx.x * WARPS + warp;
    if (row < PADDED_ROWS) read(row);
    for (; row < PADDED_ROWS; row += step) {
        mine = next;
        if (row + step < PADDED_ROWS) read(row + step);
        const bool real = row < ROWS;
        float at_output[OUTPUTS];  // dLoss/dz there
#pragma unroll
        for (int o = 0; o < OUTPUTS; ++o) {
            float z = 0.0f, p, slope, term = 0.0f, gradient = 0.0f;
#pragma unroll
            for (int i = 0; i < PAIRS; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const float w = shared[o * LAST_WIDTH + 64 * i + 2 * lane + j];
                    z = fmaf(kept_value<LAST - 1>(mine.words[i].at[j]), w, z);
                }
            activate<LAST>(warp_sum(z) + bias[o], p, slope);
            if (real) lose(p, mine.targets[o], term, gradient);
            loss += term;
            at_output[o] = gradient * slope;
            bias_sums[o] += at_output[o];
        }
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) {
            const long long at = (long long)row * LAST_WIDTH + 64 * i + 2 * lane;
            const Pair slope = has_slopes(LAST - 1) ? mine.slopes[i] : mine.words[i];
            Pair delta;
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                float sum = 0.0f;
#pragma unroll
                for (int o = 0; o < OUTPUTS; ++o) {
                    sum = fmaf(at_output[o], shared[o * LAST_WIDTH + 64 * i + 2 * lane + j], sum);
                    weight_sums[o][i][j] =
                        fmaf(at_output[o], kept_value<LAST - 1>(mine.words[i].at[j]), weight_sums[o][i][j]);
                }
                sum *= kept_slope<LAST - 1>(slope.at[j]);
                weight_sums[OUTPUTS][i][j] += sum;
                delta.at[j] = to_word(sum);
            }
            put(deltas + at, delta);
        }
    }
    __syncthreads();
    for (int turn = 0; turn < WARPS; ++turn) {  // in order: the same bits every time
        auto add = [&](int at, float value) { shared[at] = turn ? shared[at] + value : value; };
        if (warp == turn) {
#pragma unroll
            for (int o = 0; o <= OUTPUTS; ++o)
#pragma unroll
                for (int i = 0; i < PAIRS; ++i)
#pragma unroll
                    for (int j = 0; j < 2; ++j) add(o * LAST_WIDTH + 64 * i + 2 * lane + j, weight_sums[o][i][j]);
            if (lane == 0) {
#pragma unroll
                for (int o = 0; o < OUTPUTS; ++o) add((OUTPUTS + 1) * LAST_WIDTH + o, bias_sums[o]);
                add((OUTPUTS + 1) * LAST_WIDTH + OUTPUTS, loss * SHARE);
            }
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < HEAD_SUMS; i += END_THREADS) sums[(long long)blockIdx.x * HEAD_SUMS + i] = shared[i];
}
