// The first layer, whose inputs are few: in float32, for it waits for memory and not for arithmetic.

constexpr int INPUTS = WIDTH[0], FIRST = padded(1);  // columns of level 1
constexpr bool FEW_INPUTS = INPUTS <= 3;
__device__ inline long long source_row(const int* batch, int row) { return BATCHED ? batch[row] : row; }
constexpr int END_THREADS = 512, WARPS = END_THREADS / 32;
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

// Sums over rows of dLoss/dz of a layer, taken while it is in registers: for each column dLoss/dz itself, for the
// bias; and for the first layer, where inputs are few, before it dLoss/dz times each input.
template <class Work, int INPUTS_HERE>
struct ColumnSums {
    static constexpr int COUNT = INPUTS_HERE + 1, SIZE = 2 * Work::WIDE;
    Place me;
    float mine[2][COUNT] = {};  // the lanes of group j keep those of their warp's j-th piece

    // work holds dLoss/dz; first is the tile's first row.
    __device__ void add(const Work& work, const float* x, const int* batch, int first) {
        float input[2 * Work::DOWN][COUNT];
#pragma unroll
        for (int i = 0; i < 2 * Work::DOWN; ++i) {
            const int row = min(first + me.down * Work::HIGH + 8 * i + me.group, ROWS - 1);
#pragma unroll
            for (int k = 0; k < COUNT; ++k)
                input[i][k] = k < INPUTS_HERE ? x[source_row(batch, row) * INPUTS + k] : 1.0f;
        }
#pragma unroll
        for (int j = 0; j < Work::ACROSS; ++j)
#pragma unroll
            for (int n = 0; n < 2; ++n)
#pragma unroll
                for (int k = 0; k < COUNT; ++k) {
                    float sum = 0.0f;
#pragma unroll
                    for (int i = 0; i < 2 * Work::DOWN; ++i)
                        sum = fmaf(work.sums[i / 2][j][i % 2 * 2 + n], input[i][k], sum);
#pragma unroll
                    for (int lanes = 4; lanes < 32; lanes *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
                    mine[n][k] += me.group == j ? sum : 0.0f;
                }
    }
    // The block's sums: COUNT lines of so many numbers. The pipelines are done with shared memory.
    __device__ void store(float* shared, float* sums, int length) {
        constexpr int WARPS_DOWN = 2 * TEAMS;
        __syncthreads();
        if (me.group < Work::ACROSS)
            for (int n = 0; n < 2; ++n)
                for (int k = 0; k < COUNT; ++k) {
                    const int column = me.across * Work::WIDE + 8 * me.group + 2 * me.fourth + n;
                    shared[((me.team * 2 + me.down) * COUNT + k) * SIZE + column] = mine[n][k];
                }
        __syncthreads();
        for (int i = threadIdx.x; i < COUNT * SIZE; i += TEAMS * TEAM) {
            float sum = 0.0f;
            for (int warp = 0; warp < WARPS_DOWN; ++warp) sum += shared[warp * COUNT * SIZE + i];
            sums[i / SIZE * length + i % SIZE] = sum;
        }
    }
};
