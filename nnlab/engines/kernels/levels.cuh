// What lies between two layers, in the card's memory: how wide it is, and how its numbers are written: as words (mma.cuh).

constexpr int ROW_TILE = 128, NARROW_TILE = 64;  // COLUMN_TILE, 128 or 64, comes with the sizes
constexpr int PADDED_ROWS = rounded_up(ROWS, ROW_TILE), TILES = PADDED_ROWS / ROW_TILE;
__host__ __device__ constexpr int padded(int level) { return rounded_up(WIDTH[level], NARROW_TILE); }
__host__ __device__ constexpr int tile(int level) { return padded(level) % COLUMN_TILE ? NARROW_TILE : COLUMN_TILE; }

constexpr bool SHORT = PRODUCTS == 1;

// The slope of a sine is a cosine, which its value does not tell. With PRODUCTS 3 it has an array of its own,
// elsewhere called slopes. With PRODUCTS 1 it takes the 13 free bits, as a whole number from 1 to 8191 for -1 to 1.
__host__ __device__ constexpr bool has_slopes(int layer) { return !SHORT && ACTIVATION[layer] == SINE; }
constexpr float TO_WHOLE = 8388608.0f;  // added to a number below 8192, it leaves the nearest whole one in those bits

__device__ inline float pack(float sine, float cosine) {
    const unsigned rounded = __float_as_uint(to_word(sine));
    const unsigned whole = __float_as_uint(fmaf(cosine, 4095.0f, TO_WHOLE + 4096.0f));
    return __uint_as_float((rounded & SEEN) | (whole & ~SEEN));
}
__device__ inline float packed_cosine(float word) {
    const float whole = __uint_as_float((__float_as_uint(word) & ~SEEN) | __float_as_uint(TO_WHOLE));
    return (whole - (TO_WHOLE + 4096.0f)) * (1.0f / 4095.0f);
}

// sin and cos for products in TF32. The phase is brought near zero by whole turns; the card's own approximation is then
// off by 5e-7 at most, a thousandth of what TF32 rounds away.
__device__ inline void short_wave(float phase, float& sine, float& cosine) {
    constexpr float ROUND = 12582912.0f;  // as in wave
    const float turns = fmaf(phase, 0.15915494f, ROUND) - ROUND;
    float rest = fmaf(turns, -6.28125f, phase);
    rest = fmaf(turns, -1.9353072e-3f, rest);
    sine = __sinf(rest);
    cosine = __cosf(rest);
}

// What layer L keeps of its sum z: the word of its value, and the slope where that has an array.
template <int L>
__device__ inline void keep(float z, float& word, float& slope) {
    if constexpr (ACTIVATION[L] == SINE) {
        float sine, cosine;
        if constexpr (SHORT) {
            short_wave(OMEGA[L] * z, sine, cosine);
        } else {
            wave(OMEGA[L] * z, sine, cosine);
        }
        word = SHORT ? pack(sine, cosine) : sine;
        slope = OMEGA[L] * cosine;
    } else {
        activate<L>(z, word, slope);
        word = to_word(word);
    }
}

// The activation's slope, from the word that was kept, or from the slope where that has an array.
template <int L>
__device__ inline float kept_slope(float word) {
    if constexpr (has_slopes(L)) return word;
    if constexpr (ACTIVATION[L] == SINE) return OMEGA[L] * packed_cosine(word);
    return slope_at<L>(from_word(word));
}

// The value that a word of layer L stands for.
template <int L>
__device__ inline float kept_value(float word) {
    if constexpr (SHORT && ACTIVATION[L] == SINE) return __uint_as_float(__float_as_uint(word) & SEEN);
    return from_word(word);
}

struct alignas(8) Pair { float at[2]; };
__device__ inline Pair pair(const float* at) { return *reinterpret_cast<const Pair*>(at); }
__device__ inline Quad quad(const float* at) { return *reinterpret_cast<const Quad*>(at); }
// __stcg, because the compiler takes a plain store of a vector apart.
__device__ inline void put(float* at, const Pair& v) {
    __stcg(reinterpret_cast<float2*>(at), make_float2(v.at[0], v.at[1]));
}
__device__ inline void put(float* at, const Quad& v) {
    __stcg(reinterpret_cast<float4*>(at), make_float4(v.at[0], v.at[1], v.at[2], v.at[3]));
}

// Write down what layer L keeps of a vector of sums.
template <int L, typename Vector>
__device__ inline void keep_all(float* words, float* slopes, long long at, const Vector& z) {
    Vector word, slope;
#pragma unroll
    for (int i = 0; i < int(sizeof(Vector) / sizeof(float)); ++i) keep<L>(z.at[i], word.at[i], slope.at[i]);
    put(words + at, word);
    if (has_slopes(L)) put(slopes + at, slope);
}
