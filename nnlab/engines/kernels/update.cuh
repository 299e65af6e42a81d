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
