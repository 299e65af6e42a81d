// Sums sent into the shared memory of another block of the cluster. Nobody has to meet: a block counts the bytes that
// come in, and knows how many it waits for.

struct Mailbox {
    alignas(8) unsigned long long count;  // an mbarrier
    unsigned letters;                     // how often mail has come in full
};

__device__ inline unsigned in_shared(const void* place) { return unsigned(__cvta_generic_to_shared(place)); }
__device__ inline unsigned in_block(const void* place, int block) {
    unsigned theirs;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(in_shared(place)), "r"(block));
    return theirs;
}

// One thread, before any block of the cluster sends.
__device__ inline void open_mailbox(Mailbox& box) {
    box.letters = 0;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(
                     in_shared(&box.count))
                 : "memory");
}
// One thread: bytes are to come, or are coming already.
__device__ inline void expect_mail(Mailbox& box, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(in_shared(&box.count)), "r"(bytes)
                 : "memory");
}
// Write q to the same place in another block's shared memory, and count it there.
__device__ inline void mail(Quad* place, Mailbox& box, int block, const Quad& q) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
            in_block(place, block)),
        "f"(q.at[0]), "f"(q.at[1]), "f"(q.at[2]), "f"(q.at[3]), "r"(in_block(&box.count, block))
        : "memory");
}
// All threads: until everything has come. letters: how often it had come before.
__device__ inline void await_mail(Mailbox& box, unsigned letters) {
    unsigned done;
    do
        asm volatile(
            "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n}"
            : "=r"(done)
            : "r"(in_shared(&box.count)), "r"(letters % 2)
            : "memory");
    while (!done);
}
