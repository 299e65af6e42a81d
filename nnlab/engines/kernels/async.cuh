// Ways between the card's memory, shared memory and registers that have no words in CUDA C.

// Copy 16 bytes, both addresses multiples of 16, into shared memory while the thread goes on (cp.async).
__device__ inline void copy16(float* to, const float* from) {
    const unsigned shared = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
}

// Everything copied since the last call is one group.
__device__ inline void end_of_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Wait until all but this thread's last GROUPS groups have arrived.
template <int GROUPS>
__device__ inline void await_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory"); }

// Four matrices of 8 rows of 4 floats: lane 8 m + r says where row r of matrix m begins in shared memory, and lane
// 4 r + c gets column c of row r of all four (ldmatrix).
__device__ inline void read_matrices(unsigned& m0, unsigned& m1, unsigned& m2, unsigned& m3, const float* row) {
    const unsigned shared = __cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m0), "=r"(m1), "=r"(m2), "=r"(m3) : "r"(shared) : "memory");
}

// Ask for a line of memory that will be read later.
__device__ inline void expect(const float* line) { asm volatile("prefetch.global.L2 [%0];" ::"l"(line)); }
