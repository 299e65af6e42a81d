// What all training kernels share: the network as constants, activations, losses, optimisers.
//
// Sizes are constants, defined in front of this text: WIDTHS 6, 64, 1 and BIASES 1, 1 (0 where a layer has no bias),
// ACTIVATIONS (numbers below, one a layer), OMEGAS (of the sine), LOSS, OPTIMIZER with DECAY (momentum), BETA1, REST1
// (1 - beta1), BETA2, REST2 and EPSILON, ROWS (a step takes), BATCHED (1 where a table says which), THREADS (of a
// block), CLUSTER (blocks that work together; 1 is one block alone).

__device__ constexpr int WIDTH[] = {WIDTHS};
__device__ constexpr int BIAS[] = {BIASES};
__device__ constexpr int ACTIVATION[] = {ACTIVATIONS};
__device__ constexpr float OMEGA[] = {OMEGAS};
constexpr int LAYERS = sizeof(BIAS) / sizeof(int);
constexpr int LAST = LAYERS - 1;
constexpr int OUTPUTS = WIDTH[LAYERS];

enum { LINEAR, TANH, SIGMOID, RELU, LEAKY_RELU, SINE };
enum { MSE, SSE, BCE_WITH_LOGITS, BCE };
enum { SGD, MOMENTUM, ADAM };

constexpr float LEAK = 0.01f;  // slope of leaky ReLU left of zero
constexpr float SHARE = LOSS == SSE ? 1.0f : 1.0f / (float(ROWS) * OUTPUTS);      // of one element in the loss
constexpr int MEMORIES = OPTIMIZER == ADAM ? 2 : OPTIMIZER == MOMENTUM ? 1 : 0;   // kept for each parameter
constexpr int FACTORS = OPTIMIZER == ADAM ? 2 : 1;  // numbers that the host works out for each step
constexpr int ARRAYS = 1 + MEMORIES;                // a parameter and its memories

__host__ __device__ constexpr int rounded_up(int n, int unit) { return (n + unit - 1) / unit * unit; }

// A stride of 4 times an odd number: vectors of four floats at this distance lie in different banks of shared memory.
__host__ __device__ constexpr int odd_quads(int n) {
    return rounded_up(n, 4) / 4 % 2 ? rounded_up(n, 4) : rounded_up(n, 4) + 4;
}

struct alignas(16) Quad { float at[4]; };

// 1 / (1 + exp(-z)), without overflow at any z.
__device__ inline float logistic(float z) {
    float e = expf(-fabsf(z));
    return (z >= 0.0f ? 1.0f : e) / (1.0f + e);
}

// sin and cos of a phase up to about 100,000, beyond which a float32 no longer says where in its turn it is. The phase is
// brought near zero by whole quarters of a turn, in parts of falling size (Cody and Waite); polynomials as in float32
// libraries. A fifth of the code of CUDA's sincosf, which reduces phases of any size.
__device__ inline void wave(float phase, float& sine, float& cosine) {
    constexpr float ROUND = 12582912.0f;  // 1.5 * 2^23: the sum has no bits left below one
    const float rounded = fmaf(phase, 0.63661977f, ROUND), quarters = rounded - ROUND;
    const unsigned quarter = __float_as_uint(rounded);
    float rest = fmaf(quarters, -1.57079601f, phase);
    rest = fmaf(quarters, -3.13916473e-7f, rest);
    rest = fmaf(quarters, -5.39030253e-15f, rest);
    const float square = rest * rest;
    float s = fmaf(2.86567956e-6f, square, -1.98559923e-4f);
    s = fmaf(s, square, 8.33338592e-3f);
    s = fmaf(s, square, -1.66666672e-1f);
    s = fmaf(s * square, rest, rest);
    float c = fmaf(2.44677067e-5f, square, -1.38877297e-3f);
    c = fmaf(c, square, 4.16666567e-2f);
    c = fmaf(c, square, -0.5f);
    c = fmaf(c, square, 1.0f);
    const unsigned of_sine = __float_as_uint(quarter & 1 ? c : s), of_cosine = __float_as_uint(quarter & 1 ? s : c);
    sine = __uint_as_float(of_sine ^ (quarter & 2) << 30);
    cosine = __uint_as_float(of_cosine ^ (quarter + 1 & 2) << 30);
}

// a = f(z) and its slope f'(z), for the activation behind layer L.
template <int L>
__device__ inline void activate(float z, float& a, float& slope) {
    if constexpr (ACTIVATION[L] == TANH) {
        a = tanhf(z);
        slope = 1.0f - a * a;
    } else if constexpr (ACTIVATION[L] == SIGMOID) {
        a = logistic(z);
        slope = (1.0f - a) * a;
    } else if constexpr (ACTIVATION[L] == RELU) {
        a = z <= 0.0f ? 0.0f : z;  // unlike fmaxf, this leaves a NaN one
        slope = z > 0.0f ? 1.0f : 0.0f;
    } else if constexpr (ACTIVATION[L] == LEAKY_RELU) {
        a = fmaxf(z, LEAK * z);
        slope = z > 0.0f ? 1.0f : LEAK;
    } else if constexpr (ACTIVATION[L] == SINE) {
        wave(OMEGA[L] * z, a, slope);
        slope *= OMEGA[L];
    } else {
        a = z;
        slope = 1.0f;
    }
}

// The activation's slope behind layer L where its value is a (a sine's cannot be told from that).
template <int L>
__device__ inline float slope_at(float a) {
    if constexpr (ACTIVATION[L] == TANH) return 1.0f - a * a;
    if constexpr (ACTIVATION[L] == SIGMOID) return (1.0f - a) * a;
    if constexpr (ACTIVATION[L] == RELU) return a > 0.0f ? 1.0f : 0.0f;
    if constexpr (ACTIVATION[L] == LEAKY_RELU) return a > 0.0f ? 1.0f : LEAK;
    return 1.0f;
}

// One element's term of the loss (before SHARE), and dLoss/dp (with it).
__device__ inline void lose(float p, float t, float& term, float& gradient) {
    if constexpr (LOSS == MSE || LOSS == SSE) {
        float error = p - t;
        term = error * error;
        gradient = 2.0f * SHARE * error;
    } else if constexpr (LOSS == BCE_WITH_LOGITS) {
        term = fmaxf(p, 0.0f) - p * t + log1pf(expf(-fabsf(p)));
        gradient = (logistic(p) - t) * SHARE;
    } else {
        p = p < 1e-7f ? 1e-7f : p > 1.0f - 1e-7f ? 1.0f - 1e-7f : p;  // a NaN stays one
        term = -(t * logf(p) + (1.0f - t) * log1pf(-p));
        gradient = (p - t) / (p * (1.0f - p)) * SHARE;
    }
}

// One parameter's update from its gradient g; factor: this step's numbers; m, v: its memories. fmaf where the compiler
// could choose which product to round: loop_weights.cu keeps weights twice, and copies must not drift apart.
__device__ inline void update(const float* factor, float g, float& w, float& m, float& v) {
    if constexpr (OPTIMIZER == SGD) {
        w = fmaf(-factor[0], g, w);
    } else if constexpr (OPTIMIZER == MOMENTUM) {
        m = fmaf(DECAY, m, -factor[0] * g);
        w += m;
    } else {
        m = fmaf(BETA1, m, REST1 * g);
        v = fmaf(BETA2, v, REST2 * (g * g));
        w = fmaf(-factor[1], m / (sqrtf(v * factor[0]) + EPSILON), w);
    }
}

// The sum over the 32 lanes of a warp, in a fixed order; every lane gets it.
__device__ inline float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}
