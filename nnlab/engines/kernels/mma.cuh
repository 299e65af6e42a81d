// Small products on the tensor cores (mma.sync m16n8k8), which take TF32: a float32 with 10 bits of mantissa instead of
// 23; they drop the other 13. With PRODUCTS 3 each number is split into two TF32s, and three products make up for one
// ("3xTF32"): as good as float32. With PRODUCTS 1 numbers are rounded to TF32.

#ifndef ON_HOST
__device__ inline void mma(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
#endif

// The nearest TF32 (Dekker's splitting: the last 13 bits are lost in the large number and come back as zeros). NaN and
// infinity, and what is beyond 1e34, become NaN.
__device__ inline float tf32(float v) {
    const float large = __fmul_rn(v, 8193.0f);
    return __fsub_rn(large, __fsub_rn(large, v));
}

// A number as the tensor cores take it: its high part and, for 3xTF32, what that leaves.
struct Split {
    unsigned high, low;
    __device__ Split() {}
    __device__ Split(float v) {
        if (PRODUCTS == 3) {  // v - high is exact; where v is NaN or infinite, low is NaN
            high = (__float_as_uint(v) + 0x1000u) & 0xffffe000u;
            low = __float_as_uint(v - __uint_as_float(high));
        } else {
            high = __float_as_uint(tf32(v));
        }
    }
};

// With PRODUCTS 1 numbers are rounded once, when they are stored for many products, and not each time they are used.
__device__ inline float stored(float v) { return PRODUCTS == 1 ? tf32(v) : v; }
__device__ inline Split loaded(float v) {
    if constexpr (PRODUCTS == 3) return Split(v);
    Split as_it_is;
    as_it_is.high = __float_as_uint(v);
    return as_it_is;
}

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
