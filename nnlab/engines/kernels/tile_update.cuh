// What the blocks of tile.cu tell one another through the card's memory: sums of gradients, and the weights that these
// lead to.

static_assert(SUMS + LAYERS * WEIGHT_THREADS + ROW_WARPS <= SHARED_FLOATS, "sums and their parts in shared memory");
constexpr int WORKSPACE = BLOCKS * SUMS + IMAGE;  // floats
constexpr int PARTS = 8, QUADS = THREADS / PARTS;

// What another block has written: past this multiprocessor's own cache.
__device__ inline Quad quad_from_others(const float* place) {
    const float4 v = __ldcg(reinterpret_cast<const float4*>(place));
    return {{v.x, v.y, v.z, v.w}};
}

// Where a parameter is: in its tensor, and in the image of the weights as shared memory holds them.
struct Place {
    float* const* arrays;  // the tensor and its memories
    int in_tensor, in_image;

    __device__ Place(float* const* all, int p) {
        int layer = 0, tensor = 0;
        for (; layer < LAST && p >= begin(layer + 1); ++layer) tensor += 1 + BIAS[layer];
        in_tensor = p - begin(layer);
        const int row = in_tensor / WIDTH[layer + 1], column = in_tensor % WIDTH[layer + 1];
        if (row < WIDTH[layer]) {
            const int block = row / 16 * blocks(layer + 1) + column / 16;
            in_image = weights_at(layer) - IMAGE_AT + block * BLOCK + delta_place(row, column);
        } else {
            in_tensor = column;
            in_image = bias_at(layer) - IMAGE_AT + column;
            ++tensor;
        }
        arrays = all + tensor * ARRAYS;
    }
    __device__ void show(float* image) const {
        const float w = arrays[0][in_tensor];
        image[in_image] = in_image < bias_at(0) - IMAGE_AT ? to_word(w) : w;  // biases are in no product
    }
};

// Each block has a share of the parameters, in Quads. Its first one:
__device__ inline int share_of(int block) { return min(SUMS / 4, block * rounded_up(SUMS / 4, BLOCKS) / BLOCKS); }

// Bring this block's share of the image up to date with what the host may have changed.
__device__ inline void show_share(float* const* arrays, float* image) {
    const int end = min(PARAMETERS, 4 * share_of(blockIdx.x + 1));
    for (int p = 4 * share_of(blockIdx.x) + threadIdx.x; p < end; p += THREADS) Place(arrays, p).show(image);
}

// The optimiser's step for this block's share. PARTS threads have some blocks' sums each of a Quad, and then add up.
// factor: the optimiser's numbers of this step.
__device__ inline void update_share(float* shared, float* const* arrays, float* image, const float* sums,
                                    const float* factor, float* loss) {
    const int quad = threadIdx.x % QUADS, end = share_of(blockIdx.x + 1);
    for (int first = share_of(blockIdx.x); first < end; first += QUADS) {
        Quad sum = {};
        if (threadIdx.x < PARTS * QUADS && first + quad < end) {
#pragma unroll 9
            for (int block = threadIdx.x / QUADS; block < BLOCKS; block += PARTS) {
                const Quad its = quad_from_others(sums + block * SUMS + 4 * (first + quad));
#pragma unroll
                for (int i = 0; i < 4; ++i) sum.at[i] += its.at[i];
            }
        }
        put(shared + 4 * threadIdx.x, sum);
        __syncthreads();
        for (int i = threadIdx.x; i < 4 * min(QUADS, end - first); i += THREADS) {
            float total = 0.0f;
            for (int part = 0; part < PARTS; ++part) total += shared[4 * QUADS * part + i];
            const int p = 4 * first + i;
            if (p == PARAMETERS) *loss = total;
            if (p >= PARAMETERS) continue;
            const Place place(arrays, p);
            float none = 0.0f;
            float& m = MEMORIES > 0 ? place.arrays[1][place.in_tensor] : none;
            float& v = MEMORIES > 1 ? place.arrays[2][place.in_tensor] : none;
            update(factor, total, place.arrays[0][place.in_tensor], m, v);
            place.show(image);
        }
        __syncthreads();
    }
}
