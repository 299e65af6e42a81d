// The kernels around gemm.cu's products: the first layer, whose inputs are few, the last one with the loss, whose
// outputs are few, and the update. All in float32: they wait for memory, not for arithmetic.

constexpr int END_THREADS = 512, WARPS = END_THREADS / 32;
constexpr int LAST_WIDTH = padded(LAST);               // columns of level LAST
#define OF_ENDS extern "C" __global__ void __launch_bounds__(END_THREADS, 1)

// Level 1, from the inputs.
OF_ENDS first_layer(const float* x, const int* batch, const float* weight, const float* bias, float* after,
                    float* slopes) {
    for (int i = blockIdx.x * END_THREADS + threadIdx.x; i < PADDED_ROWS * (FIRST / 4); i += gridDim.x * END_THREADS) {
        const int row = i / (FIRST / 4), column = i % (FIRST / 4) * 4;
        const float* from = x + source_row(batch, min(row, ROWS - 1)) * INPUTS;
        Quad z = quad(bias + column);
#pragma unroll 8
        for (int k = 0; k < INPUTS; ++k) {
            const float value = from[k];
            const Quad w = quad(weight + k * FIRST + column);
#pragma unroll
            for (int j = 0; j < 4; ++j) z.at[j] = fmaf(value, w.at[j], z.at[j]);
        }
        keep_all<0>(after, slopes, (long long)row * FIRST + column, z);
    }
}

// The gradients of the first layer: for each input (blockIdx.y has four of them; behind the last one comes the bias,
// whose input is 1) the sum over rows of the input times dLoss/dz. Each blockIdx.x leaves (INPUTS + 1) x FIRST sums.
OF_ENDS first_gradients(const float* x, const int* batch, const float* after, float* sums) {
    constexpr int AT_ONCE = END_THREADS / (FIRST / 4);  // rows
    extern __shared__ __align__(16) float shared[];     // 4 x FIRST
    const int column = threadIdx.x % (FIRST / 4) * 4, mine = threadIdx.x / (FIRST / 4);
    const int input = blockIdx.y * 4;
    float sum[4][4] = {};
    if (mine < AT_ONCE)
#pragma unroll 4
        for (int row = blockIdx.x * AT_ONCE + mine; row < ROWS; row += gridDim.x * AT_ONCE) {
            const float* from = x + source_row(batch, row) * INPUTS;
            const Quad delta = quad(after + (long long)row * FIRST + column);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float value = input + i < INPUTS ? from[input + i] : 1.0f;
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(value, from_word(delta.at[j]), sum[i][j]);
            }
        }
    for (int turn = 0; turn < AT_ONCE; ++turn) {  // in order: the same bits every time
        if (mine == turn)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    float& total = shared[i * FIRST + column + j];
                    total = turn ? total + sum[i][j] : sum[i][j];
                }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < min(4, INPUTS + 1 - input) * FIRST; i += END_THREADS)
        sums[(blockIdx.x * (INPUTS + 1) + input) * FIRST + i] = shared[i];
}

// The last layer, the loss, and dLoss/dz of the layer before (over the slopes, where they have an array). A warp takes a row, each lane two columns
// of every 64. Each block leaves LAST_WIDTH sums of the weight's gradient for each output, the outputs' of the bias,
// and its share of the loss.
constexpr int PAIRS = LAST_WIDTH / 64, HEAD_SUMS = OUTPUTS * LAST_WIDTH + OUTPUTS + 1;

OF_ENDS head(const float* y, const int* batch, const float* weight, const float* bias, const float* before,
             const float* slopes, float* deltas, float* sums) {
    extern __shared__ __align__(16) float shared[];  // the weight, an output a line; later the sums
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int i = threadIdx.x; i < OUTPUTS * LAST_WIDTH; i += END_THREADS)
        shared[i] = weight[i % LAST_WIDTH * OUTPUTS + i / LAST_WIDTH];
    __syncthreads();
    float weight_sums[OUTPUTS][PAIRS][2] = {}, bias_sums[OUTPUTS] = {}, loss = 0.0f;
    Pair words[PAIRS], next[PAIRS];
    auto read = [&](int row) {
#pragma unroll
        for (int i = 0; i < PAIRS; ++i)
            next[i] = pair(before + (long long)row * LAST_WIDTH + 64 * i + 2 * lane);
    };
    const int step = gridDim.x * WARPS;
    int row = blockIdx.x * WARPS + warp;
    if (row < PADDED_ROWS) read(row);
    for (; row < PADDED_ROWS; row += step) {
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) words[i] = next[i];
        if (row + step < PADDED_ROWS) read(row + step);
        const bool real = row < ROWS;
        float at_output[OUTPUTS];  // dLoss/dz there
#pragma unroll
        for (int o = 0; o < OUTPUTS; ++o) {
            float z = 0.0f, p, slope, term = 0.0f, gradient = 0.0f;
#pragma unroll
            for (int i = 0; i < PAIRS; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j)
                    z = fmaf(kept_value<LAST - 1>(words[i].at[j]), shared[o * LAST_WIDTH + 64 * i + 2 * lane + j], z);
            activate<LAST>(warp_sum(z) + bias[o], p, slope);
            if (real) lose(p, y[source_row(batch, row) * OUTPUTS + o], term, gradient);
            loss += term;
            at_output[o] = gradient * slope;
            bias_sums[o] += at_output[o];
        }
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) {
            const long long at = (long long)row * LAST_WIDTH + 64 * i + 2 * lane;
            const Pair slope = has_slopes(LAST - 1) ? pair(slopes + at) : words[i];
            Pair delta;
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                float sum = 0.0f;
#pragma unroll
                for (int o = 0; o < OUTPUTS; ++o) {
                    sum = fmaf(at_output[o], shared[o * LAST_WIDTH + 64 * i + 2 * lane + j], sum);
                    weight_sums[o][i][j] =
                        fmaf(at_output[o], kept_value<LAST - 1>(words[i].at[j]), weight_sums[o][i][j]);
                }
                delta.at[j] = to_word(sum * kept_slope<LAST - 1>(slope.at[j]));
            }
            put(deltas + at, delta);
        }
    }
    __syncthreads();
    for (int turn = 0; turn < WARPS; ++turn) {  // in order: the same bits every time
        auto add = [&](int at, float value) { shared[at] = turn ? shared[at] + value : value; };
        if (warp == turn) {
#pragma unroll
            for (int o = 0; o < OUTPUTS; ++o)
#pragma unroll
                for (int i = 0; i < PAIRS; ++i)
#pragma unroll
                    for (int j = 0; j < 2; ++j) add(o * LAST_WIDTH + 64 * i + 2 * lane + j, weight_sums[o][i][j]);
            if (lane == 0) {
#pragma unroll
                for (int o = 0; o < OUTPUTS; ++o) add(OUTPUTS * LAST_WIDTH + o, bias_sums[o]);
                add(OUTPUTS * LAST_WIDTH + OUTPUTS, loss * SHARE);
            }
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < HEAD_SUMS; i += END_THREADS) sums[(long long)blockIdx.x * HEAD_SUMS + i] = shared[i];
}

// A tensor of the model: where its numbers are, where the sums of its gradient, and its padded copies for the kernels.
struct Tensor {
    const float* sums;           // of the first block; the others' follow
    float *values, *copy;        // the model's own numbers, and the copy
    float* turned;               // for the weight of a product: the copy turned around, and both hold words
    float* memories[2];          // the optimiser's
    long long blocks, distance;  // how many blocks left sums, and how many numbers apart
    long long size, columns, row_step, column_step;  // of a block's sums: steps between neighbours
    long long copy_columns, turned_columns;
    __device__ void copy_down(int row, int column, float value) const {
        copy[row * copy_columns + column] = turned ? to_word(value) : value;
        if (turned) turned[column * turned_columns + row] = to_word(value);
    }
};

// The copies, from the model; blockIdx.y says which tensor.
extern "C" __global__ void load(const Tensor* tensors) {
    const Tensor tensor = tensors[blockIdx.y];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, columns = tensor.columns;
    if (i < tensor.size) tensor.copy_down(i / columns, i % columns, tensor.values[i]);
}

// The blocks' sums added up in order, and the optimiser's step; blockIdx.y says for which tensor. The last "tensor" is
// the loss, which is only written down. factor: the optimiser's numbers of this step. Where many blocks left sums, the
// eight warps take an eighth of them each.
constexpr int UPDATE_THREADS = 256, UPDATE_WARPS = UPDATE_THREADS / 32, MANY_BLOCKS = 32;

extern "C" __global__ void __launch_bounds__(UPDATE_THREADS) update_all(const Tensor* tensors, const float* factor,
                                                                        float* loss) {
    extern __shared__ __align__(16) float shared[];  // UPDATE_THREADS
    const Tensor tensor = tensors[blockIdx.y];
    const int shares = tensor.blocks > MANY_BLOCKS ? UPDATE_WARPS : 1, at_once = UPDATE_THREADS / shares;
    const int share = threadIdx.x / at_once, i = blockIdx.x * at_once + threadIdx.x % at_once;
    const int columns = tensor.columns, row = i / columns, column = i % columns;
    float sum = 0.0f;
    if (i < tensor.size) {
        const float* from = tensor.sums + row * tensor.row_step + column * tensor.column_step;
        const int end = tensor.blocks * (share + 1) / shares;
#pragma unroll 16
        for (int block = tensor.blocks * share / shares; block < end; ++block) sum += from[block * tensor.distance];
    }
    if (shares > 1) {
        shared[threadIdx.x] = sum;
        __syncthreads();
        sum = 0.0f;
        for (int warp = 0; warp < UPDATE_WARPS; ++warp) sum += shared[warp * 32 + threadIdx.x % 32];
    }
    if (i >= tensor.size || share > 0) return;
    if (blockIdx.y == gridDim.y - 1) {
        *loss = sum;
        return;
    }
    float none = 0.0f;
    float& m = MEMORIES > 0 ? tensor.memories[0][i] : none;
    float& v = MEMORIES > 1 ? tensor.memories[1][i] : none;
    float& value = tensor.values[i];
    update(factor, sum, value, m, v);
    tensor.copy_down(row, column, value);
}
