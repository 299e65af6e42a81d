// Small products on the tensor cores (mma.sync m16n8k8), which take TF32: a float32 with 10 bits of mantissa instead of
// 23; they drop the other 13. With PRODUCTS 3 each number is split into two TF32s, and three products make up for one
// ("3xTF32"): as good as float32.
//
// With PRODUCTS 1 a number is kept as a word: its bits plus half a unit of the last bit that the tensor cores look at.
// Cut off there, the word is the number rounded to TF32; and less the half unit, it is the whole float32 again, as slopes
// need it: 1 - a * a of an a next to 1. A NaN stays one, and the 0 of memory that nobody has written to stays 0. With
// PRODUCTS 3 a word is the number itself.

constexpr unsigned HALF = 0x1000u, SEEN = 0xffffe000u;

__device__ inline float to_word(float v) {
    return PRODUCTS == 3 || v != v ? v : __uint_as_float(__float_as_uint(v) + HALF);
}
__device__ inline float from_word(float word) {
    return PRODUCTS == 3 ? word : __uint_as_float(max(__float_as_uint(word), HALF) - HALF);
}

#ifndef ON_HOST
__device__ inline void mma(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
#endif

// A word as the tensor cores take it: its high part and, for 3xTF32, what that leaves.
struct Split {
    unsigned high, low;
    __device__ Split() {}
    __device__ Split(float word) {
        high = __float_as_uint(word);
        if (PRODUCTS == 1) return;
        high = (high + HALF) & SEEN;
        low = __float_as_uint(word - __uint_as_float(high));  // exact; where word is NaN or infinite, NaN
    }
};

// The two small terms of 3xTF32, and the large one. The tensor cores round each sum toward zero: small ones go first.
__device__ inline void add_small(float (&c)[4], const Split (&a)[4], const Split (&b)[2]) {
    mma(c, a[0].low, a[1].low, a[2].low, a[3].low, b[0].high, b[1].high);
    mma(c, a[0].high, a[1].high, a[2].high, a[3].high, b[0].low, b[1].low);
}
__device__ inline void add_large(float (&c)[4], const Split (&a)[4], const Split (&b)[2]) {
    mma(c, a[0].high, a[1].high, a[2].high, a[3].high, b[0].high, b[1].high);
}
__device__ inline void add_product(float (&c)[4], const Split (&a)[4], const Split (&b)[2]) {
    if constexpr (PRODUCTS == 3) add_small(c, a, b);
    add_large(c, a, b);
}
