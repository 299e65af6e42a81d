// A block's share of a large product: tiles of both operands stream through shared memory, sums stay in registers.
//
// A block of 4 warps, 2 down and 2 across, computes A::SIZE x B::SIZE sums. k, over which the product sums, is taken in
// stages of DEPTH; while one stage is multiplied, the copies of the next ones are under way.
//
// In shared memory the vectors of four numbers in a line change places, by a rule of `flipped`: so the lanes that read
// or write at the same time find all 32 banks.

constexpr int DEPTH = 32, STAGES = 3, PRODUCT_THREADS = 128;

struct Lane {
    int lane = threadIdx.x % 32, group = lane / 4, fourth = lane % 4;  // as mma deals a piece of 16 x 8 out
    int down = threadIdx.x / 64, across = threadIdx.x / 32 % 2;
};

// An operand that lies in memory with k running along its lines: SIZE lines of DEPTH numbers.
template <int LINES>
struct Along {
    static constexpr int SIZE = LINES, FLOATS = LINES * DEPTH;
    __device__ static int at(int line, int vector) { return line * DEPTH + 4 * (vector ^ line % 8); }

    __device__ static void copy(float* to, const float* from, int length) {
        const int line = threadIdx.x / 8, vector = threadIdx.x % 8;
#pragma unroll
        for (int i = 0; i < SIZE; i += PRODUCT_THREADS / 8)
            copy16(to + at(line + i, vector), from + (line + i) * length + 4 * vector);
    }
    __device__ static const float* next(const float* from, int) { return from + DEPTH; }

    // The piece that begins at line `first` and at k, as the left operand of an mma: 16 lines of 8 k.
    __device__ static void left(unsigned (&a)[4], const float* tile, int first, int k, Lane me) {
        read_matrices(a[0], a[1], a[2], a[3], tile + at(first + me.lane % 16, k / 4 + me.lane / 16));
    }
    // Two pieces of a right operand: 8 lines of 8 k, and 8 more.
    __device__ static void right(unsigned* b, const float* tile, int first, int k, Lane me) {
        const int line = first + me.lane / 16 * 8 + me.lane % 8;
        read_matrices(b[0], b[1], b[2], b[3], tile + at(line, k / 4 + me.lane / 8 % 2));
    }
};

// An operand that lies across: DEPTH lines, one for each k, of SIZE numbers.
template <int COLUMNS>
struct Across {
    static constexpr int SIZE = COLUMNS, FLOATS = COLUMNS * DEPTH;
    __device__ static int at(int line, int vector) { return line * SIZE + 4 * (vector ^ 2 * (line % 4)); }

    __device__ static void copy(float* to, const float* from, int length) {
        const int line = threadIdx.x / (SIZE / 4), vector = threadIdx.x % (SIZE / 4);
#pragma unroll
        for (int i = 0; i < DEPTH; i += 4 * PRODUCT_THREADS / SIZE)
            copy16(to + at(line + i, vector), from + (line + i) * length + 4 * vector);
    }
    __device__ static const float* next(const float* from, int length) { return from + DEPTH * length; }

    __device__ static unsigned number(const float* tile, int line, int column) {
        return __float_as_uint(tile[at(line, column / 4) + column % 4]);
    }
    __device__ static void left(unsigned (&a)[4], const float* tile, int first, int k, Lane me) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            a[i] = number(tile, k + i / 2 * 4 + me.fourth, first + i % 2 * 8 + me.group);
    }
    __device__ static void right(unsigned* b, const float* tile, int first, int k, Lane me) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            b[i] = number(tile, k + i % 2 * 4 + me.fourth, first + i / 2 * 8 + me.group);
    }
};

// COUNT numbers as the tensor cores take them: TF32, and for 3xTF32 also what that leaves.
template <int COUNT>
struct Parts {
    unsigned high[COUNT], low[COUNT];
    __device__ explicit Parts(const unsigned (&bits)[COUNT]) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            high[i] = SHORT ? bits[i] : (bits[i] + HALF) & SEEN;
            low[i] = SHORT ? 0 : __float_as_uint(__uint_as_float(bits[i]) - __uint_as_float(high[i]));
        }
    }
};

template <class A, class B>
struct Product {
    static constexpr int HIGH = A::SIZE / 2, WIDE = B::SIZE / 2;     // of a warp's part
    static constexpr int DOWN = HIGH / 16, ACROSS = WIDE / 8;        // its pieces
    static constexpr int FLOATS = STAGES * (A::FLOATS + B::FLOATS);  // of shared memory
    float sums[DOWN][ACROSS][4] = {};
    float column_sums[ACROSS] = {};  // of the numbers of B that pass through this lane, where they are asked for
    Lane me;

    // Begin every line of sums with the same numbers, one a column.
    __device__ void begin_with(const float* line) {
#pragma unroll
        for (int j = 0; j < ACROSS; ++j)
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                const float value = line[me.across * WIDE + 8 * j + 2 * me.fourth + n % 2];
#pragma unroll
                for (int i = 0; i < DOWN; ++i) sums[i][j][n] = value;
            }
    }

    // a, b: the first stage's numbers in the card's memory, in lines of a_length and b_length.
    __device__ void add(float* shared, const float* a, int a_length, const float* b, int b_length, int stages,
                        bool with_column_sums = false) {
        int asked = 0;
        auto ask = [&] {
            if (asked < stages) {
                float* to = shared + asked % STAGES * (A::FLOATS + B::FLOATS);
                A::copy(to, a, a_length);
                B::copy(to + A::FLOATS, b, b_length);
                a = A::next(a, a_length);
                b = B::next(b, b_length);
            }
            ++asked;
            end_of_group();
        };
        for (int stage = 0; stage < STAGES - 1; ++stage) ask();
        for (int stage = 0; stage < stages; ++stage) {
            await_groups<STAGES - 2>();
            __syncthreads();
            ask();
            const float* tile = shared + stage % STAGES * (A::FLOATS + B::FLOATS);
            multiply(tile, tile + A::FLOATS, with_column_sums);
        }
    }

    __device__ void multiply(const float* a, const float* b, bool with_column_sums) {
#pragma unroll
        for (int k = 0; k < DEPTH; k += 8) {
            unsigned right[2 * ACROSS];
#pragma unroll
            for (int j = 0; j < ACROSS; j += 2)
                B::right(right + 2 * j, b, me.across * WIDE + 8 * j, k, me);
            if (with_column_sums)
#pragma unroll
                for (int j = 0; j < ACROSS; ++j)
                    column_sums[j] +=
                        from_word(__uint_as_float(right[2 * j])) + from_word(__uint_as_float(right[2 * j + 1]));
#pragma unroll
            for (int i = 0; i < DOWN; ++i) {
                unsigned left[4];
                A::left(left, a, me.down * HIGH + 16 * i, k, me);
                add_pieces(sums[i], left, right);
            }
        }
    }

    // One piece of A with all of B. Small terms first, each term for all sums, so that many are under way at a time.
    __device__ static void add_pieces(float (&sums)[ACROSS][4], const unsigned (&left)[4],
                                      const unsigned (&right)[2 * ACROSS]) {
        const Parts<4> a(left);
        const Parts<2 * ACROSS> b(right);
#pragma unroll
        for (int term = PRODUCTS - 1; term >= 0; --term)
#pragma unroll
            for (int j = 0; j < ACROSS; ++j) {
                const auto& p = term == 2 ? a.low : a.high;
                const auto& q = term == 1 ? b.low : b.high;
                mma(sums[j], p[0], p[1], p[2], p[3], q[2 * j], q[2 * j + 1]);
            }
    }

    // work(row, column, sums of that and the next column), for all that this lane has.
    template <typename Work>
    __device__ void for_each_pair(Work work) {
#pragma unroll
        for (int i = 0; i < 2 * DOWN; ++i)
#pragma unroll
            for (int j = 0; j < ACROSS; ++j) {
                const float* two = &sums[i / 2][j][i % 2 * 2];
                work(me.down * HIGH + 8 * i + me.group, me.across * WIDE + 8 * j + 2 * me.fourth, Pair{two[0], two[1]});
            }
    }
};
