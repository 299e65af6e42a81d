// Ways between the card's memory, shared memory and registers that have no words in CUDA C.

// Copy COUNT times 16 bytes into shared memory while the thread goes on (cp.async); each time the places are TO and
// FROM numbers further. Such distances are part of the instructions, and need no registers.
template <int COUNT, int TO, int FROM, int I = 0>
__device__ inline void copy_quads(float* to, const float* from) {
    if constexpr (I < COUNT) {
        const unsigned shared = __cvta_generic_to_shared(to);
        asm volatile("cp.async.cg.shared.global [%0 + %2], [%1 + %3], 16;"
                     ::"r"(shared), "l"(from), "n"(4 * I * TO), "n"(4 * I * FROM) : "memory");
        copy_quads<COUNT, TO, FROM, I + 1>(to, from);
    }
}

// The same for one time 16 bytes.
__device__ inline void copy16(float* to, const float* from) { copy_quads<1, 0, 0>(to, from); }

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

// All threads of a team wait for one another; the numbers of such barriers begin behind that of __syncthreads.
template <int THREADS_OF_TEAM>
__device__ inline void team_barrier(int team) {
    asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(THREADS_OF_TEAM) : "memory");
}
