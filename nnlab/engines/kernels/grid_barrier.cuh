// All blocks of the card wait for one another, and then see what any of them wrote before. The count only ever grows:
// `target` is what it will be when all have come.
struct GridBarrier {
    unsigned* count;
    unsigned target;
    __device__ void wait() {
        target += gridDim.x;
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned seen;
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
            do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
            while (int(seen - target) < 0);
        }
        __syncthreads();
    }
};
