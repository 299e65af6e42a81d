// What a row warp does with its 16 rows. A product's output is made of pieces of 16 x 8 numbers; a lane holds, of each,
// (group, 2 fourth), (group, 2 fourth + 1) and the same of the row 8 below. Of two neighbouring pieces these make two
// Quads, `odd` 0 and 1, and a Quad is the lane's share of the left side of the next product's step.

// How many blocks of 16 columns are made at a time. More use what is loaded of the left side more often; fewer make
// shorter code, and the instruction cache is small: what is written out runs once a tile.
__host__ __device__ constexpr int at_a_time(int level) {
    int count = GROUP;
    while (blocks(level) % count != 0) --count;
    return count;
}
template <int LEVEL>
using Pieces = float[2 * at_a_time(LEVEL)][4];

// The number of c that is (8 down, 8 across) from the first of a Quad.
template <int COUNT>
__device__ inline float& number(float (&c)[COUNT][4], int block, int odd, int down, int across) {
    return c[2 * block + across][2 * down + odd];
}
__device__ inline unsigned lane_quad(unsigned odd) { return quad_place(group(), 2 * fourth() + odd); }

// The warp's rows of a level, from a block on.
template <int LEVEL>
__device__ inline float* my_rows(float* shared, unsigned first = 0) {
    return shared + level_at(LEVEL) + (warp() * blocks(LEVEL) + first) * BLOCK;
}
template <int LEVEL, typename Work>
__device__ inline void for_blocks(Work work) {
#pragma unroll 1
    for (unsigned first = 0; first < blocks(LEVEL); first += at_a_time(LEVEL)) work(first);
}
// work(block, odd) for each of the lane's Quads in what is made at a time.
template <int LEVEL, typename Work>
__device__ inline void for_quads(Work work) {
#pragma unroll
    for (int block = 0; block < at_a_time(LEVEL); ++block)
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) work(block, odd);
}

// z of layer L, for the blocks of columns from `first` on.
template <int L>
__device__ inline void linear(float* shared, unsigned first, Pieces<L + 1>& c) {
#pragma unroll
    for (int piece = 0; piece < 2 * at_a_time(L + 1); ++piece) {
        const Pair bias = pair_at(shared + bias_at(L) + 16 * first + 8 * piece + 2 * fourth());
#pragma unroll
        for (int i = 0; i < 4; ++i) c[piece][i] = bias.at[i % 2];
    }
    const float* in = my_rows<L>(shared);
    const float* weight = shared + weights_at(L) + first * BLOCK;
    const unsigned even = quad_place(2 * fourth(), group()), uneven = quad_place(2 * fourth() + 1, group());
#pragma unroll STEPS_OUT
    for (int block = 0; block < blocks(L); ++block)
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
            const Quad v = quad_at(in + block * BLOCK + lane_quad(odd));
            const Split a[4] = {Split(v.at[0]), Split(v.at[2]), Split(v.at[1]), Split(v.at[3])};
#pragma unroll
            for (int i = 0; i < at_a_time(L + 1); ++i) {
                const Quad w = quad_at(weight + (block * blocks(L + 1) + i) * BLOCK + (odd ? uneven : even));
                add_product(c[2 * i], a, {Split(w.at[0]), Split(w.at[1])});
                add_product(c[2 * i + 1], a, {Split(w.at[2]), Split(w.at[3])});
            }
        }
}

// delta times the transposed weight of layer L, for the same.
template <int L>
__device__ inline void transposed(float* shared, unsigned first, Pieces<L>& c) {
    const float* delta = my_rows<L + 1>(shared);
    const float* weight = shared + weights_at(L) + first * blocks(L + 1) * BLOCK;
#pragma unroll STEPS_OUT
    for (int block = 0; block < blocks(L + 1); ++block)
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
            const Quad d = quad_at(delta + block * BLOCK + lane_quad(odd));
            const Split a[4] = {Split(d.at[0]), Split(d.at[1]), Split(d.at[2]), Split(d.at[3])};
#pragma unroll
            for (int i = 0; i < at_a_time(L); ++i) {
                const Quad w = quad_at(weight + (i * blocks(L + 1) + block) * BLOCK + lane_quad(odd));
                add_product(c[2 * i], a, {Split(w.at[0]), Split(w.at[2])});
                add_product(c[2 * i + 1], a, {Split(w.at[1]), Split(w.at[3])});
            }
        }
}

// tanh in few instructions, for any z, with an error of 2e-7 next to 1. (tanh.approx may be off by 2^-11 of itself, as the
// PTX manual says, which next to 1 can be all of the slope 1 - a * a.)
__device__ inline float quick_tanh(float z) {
#ifdef ON_HOST
    return tanhf(z);
#else
    float a;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(a) : "f"(2.885390082f * z));  // exp(2 z)
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(a) : "f"(1.0f + a));
    return 1.0f - 2.0f * a;
#endif
}

// The activation behind layer L.
template <int L>
__device__ inline float activated(float z) {
    if constexpr (ACTIVATION[L] == TANH) return quick_tanh(z);
    float a, unused;
    activate<L>(z, a, unused);
    return a;
}
// Values from level L on to the one before the last layer.
template <int L>
__device__ inline void forward(float* shared) {
    if constexpr (L < LAST) {
        for_blocks<L + 1>([&](unsigned first) {
            Pieces<L + 1> c;
            linear<L>(shared, first, c);
            float* out = my_rows<L + 1>(shared, first);
            for_quads<L + 1>([&](int block, int odd) {
                Quad a;
#pragma unroll
                for (int i = 0; i < 4; ++i) a.at[i] = to_word(activated<L>(number(c, block, odd, i / 2, i % 2)));
                put(out + block * BLOCK + lane_quad(odd), a);
            });
        });
        forward<L + 1>(shared);
    }
}

// The last layer, and dLoss/dz in place of the targets. Returns the lane's terms of the loss. rows: so many are real.
__device__ inline float finish(float* shared, int rows) {
    float loss = 0.0f;
    for_blocks<LAYERS>([&](unsigned first) {
        Pieces<LAYERS> c;
        linear<LAST>(shared, first, c);
        float* out = my_rows<LAYERS>(shared, first);
        for_quads<LAYERS>([&](int block, int odd) {
            float* place = out + block * BLOCK + lane_quad(odd);
            const Quad target = quad_at(place);
            Quad delta;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = 16 * warp() + group() + i % 2 * 8;
                const unsigned column = 16 * (first + block) + 2 * fourth() + odd + i / 2 * 8;
                float term = 0.0f, gradient = 0.0f, p = 0.0f;
                if (row < rows && column < OUTPUTS) {
                    p = activated<LAST>(number(c, block, odd, i % 2, i / 2));
                    lose(p, target.at[i], term, gradient);
                }
                loss += term;
                delta.at[i] = to_word(gradient * slope_at<LAST>(p));
            }
            put(place, delta);
        });
    });
    return loss;
}

// From dLoss/dz behind layer L to those behind the layers before, each in place of that layer's values.
template <int L>
__device__ inline void backward(float* shared) {
    arrive<DELTAS_THERE>();
    if constexpr (L > 0) {
        for_blocks<L>([&](unsigned first) {
            Pieces<L> c = {};
            transposed<L>(shared, first, c);
            float* in = my_rows<L>(shared, first);
            for_quads<L>([&](int block, int odd) {
                const Quad a = quad_at(in + block * BLOCK + lane_quad(odd));
#pragma unroll
                for (int i = 0; i < 4; ++i) number(c, block, odd, i / 2, i % 2) *= slope_at<L - 1>(from_word(a.at[i]));
            });
            if (first == 0) wait<VALUES_USED>();
            for_quads<L>([&](int block, int odd) {
                Quad delta;
#pragma unroll
                for (int i = 0; i < 4; ++i) delta.at[i] = to_word(number(c, block, odd, i % 2, i / 2));
                put(in + block * BLOCK + lane_quad(odd), delta);
            });
        });
        backward<L - 1>(shared);
    }
}
