// A block's share of a large product: tiles of both operands stream through shared memory, sums stay in registers.
//
// A block is two teams of 4 warps, which work on tiles of their own and do not wait for one another: while one writes
// its sums down, the other one has the tensor cores. A team's warps, 2 down and 2 across, compute A::SIZE x B::SIZE
// sums. k, over which the product sums, is taken in stages of DEPTH; while one is multiplied, the next ones are on
// their way.
//
// In shared memory the vectors of four numbers in a line change places, by a rule of `at`: so the lanes that
// read or write at the same time find all 32 banks.

constexpr int DEPTH = 32, TEAMS = 2, TEAM = 128;

struct Place {
    int team = threadIdx.x / TEAM, thread = threadIdx.x % TEAM, lane = thread % 32;
    int group = lane / 4, fourth = lane % 4;  // as mma deals a piece of 16 x 8 out
    int down = thread / 64, across = thread / 32 % 2;
};

// An operand that lies in memory with k running along its lines: SIZE lines of DEPTH numbers.
template <int LINES>
struct Along {
    static constexpr int SIZE = LINES, FLOATS = LINES * DEPTH;
    __device__ static int at(int line, int vector) { return line * DEPTH + 4 * (vector ^ line % 8); }

    // A thread's share of copying a stage: every so many lines one vector. LENGTH: of a line in the card's memory.
    template <int LENGTH>
    struct Copier {
        static constexpr int STEP = TEAM / 8;
        int line = threadIdx.x % TEAM / 8, vector = threadIdx.x % 8, to = at(line, vector);
        const float* from;
        __device__ explicit Copier(const float* tile) : from(tile + line * LENGTH + 4 * vector) {}
        __device__ void copy(float* tile) {
            copy_quads<SIZE / STEP, STEP * DEPTH, STEP * LENGTH>(tile + to, from);
            from += DEPTH;
        }
    };

    // A lane's share of reading pieces for an mma; the first line is its warp's.
    struct Left {  // 16 lines of 8 k
        int mine[DEPTH / 8];
        __device__ Left(int first, Place me) {
            for (int k = 0; k < DEPTH / 8; ++k) mine[k] = at(first + me.lane % 16, 2 * k + me.lane / 16);
        }
        __device__ void read(unsigned (&a)[4], const float* tile, int piece, int k) const {
            read_matrices(a[0], a[1], a[2], a[3], tile + mine[k / 8] + piece * 16 * DEPTH);
        }
    };
    struct Right {  // 8 lines of 8 k, and the next 8 lines
        int mine[DEPTH / 8];
        __device__ Right(int first, Place me) {
            for (int k = 0; k < DEPTH / 8; ++k)
                mine[k] = at(first + me.lane / 16 * 8 + me.lane % 8, 2 * k + me.lane / 8 % 2);
        }
        __device__ void read(unsigned* b, const float* tile, int piece, int k) const {
            read_matrices(b[0], b[1], b[2], b[3], tile + mine[k / 8] + piece * 8 * DEPTH);
        }
    };
    __device__ static int row(int i, int group) { return 8 * i + group; }
};

// An operand that lies across: DEPTH lines, one for each k, of SIZE numbers.
template <int COLUMNS>
struct Across {
    static constexpr int SIZE = COLUMNS, FLOATS = COLUMNS * DEPTH;
    __device__ static int at(int line, int vector) { return line * SIZE + 4 * (vector ^ 2 * (line % 4)); }

    template <int LENGTH>
    struct Copier {
        static constexpr int STEP = 4 * TEAM / SIZE;
        int line = threadIdx.x % TEAM / (SIZE / 4), vector = threadIdx.x % (SIZE / 4), to = at(line, vector);
        const float* from;
        __device__ explicit Copier(const float* tile) : from(tile + line * LENGTH + 4 * vector) {}
        __device__ void copy(float* tile) {
            copy_quads<DEPTH / STEP, STEP * SIZE, STEP * LENGTH>(tile + to, from);
            from += DEPTH * LENGTH;
        }
        // Only this team's share of the lines.
        __device__ void copy_share(float* tile) {
            constexpr int LINES = DEPTH / TEAMS;
            const int first = threadIdx.x / TEAM * LINES;
            copy_quads<LINES / STEP, STEP * SIZE, STEP * LENGTH>(tile + to + first * SIZE, from + first * LENGTH);
            from += DEPTH * LENGTH;
        }
    };

    // Two neighbouring numbers are the rows g and g + 8 of an mma's left operand, so that one load brings both.
    struct Left {
        int mine[2];  // by the number of a piece of 16 columns, modulo 2
        __device__ Left(int first, Place me) {
            for (int piece = 0; piece < 2; ++piece)
                mine[piece] = at(me.fourth, (first + 16 * piece + 2 * me.group) / 4) + me.group % 2 * 2;
        }
        __device__ void read(unsigned (&a)[4], const float* tile, int piece, int k) const {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const Pair two = pair(tile + mine[piece % 2] + piece / 2 * 32 + (k + 4 * half) * SIZE);
                a[2 * half] = __float_as_uint(two.at[0]);
                a[2 * half + 1] = __float_as_uint(two.at[1]);
            }
        }
    };
    struct Right {
        int mine[4];  // by the number of a piece of 8 columns, modulo 4
        __device__ Right(int first, Place me) {
            for (int piece = 0; piece < 4; ++piece)
                mine[piece] = at(me.fourth, (first + 8 * piece + me.group) / 4) + me.group % 4;
        }
        __device__ void read(unsigned* b, const float* tile, int piece, int k) const {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int which = piece + i / 2;
                b[i] = __float_as_uint(tile[mine[which % 4] + which / 4 * 32 + (k + i % 2 * 4) * SIZE]);
            }
        }
    };
    // Which of a warp's rows the i-th half of its pieces is, for this group of lanes.
    __device__ static int row(int i, int group) { return i / 2 * 16 + 2 * group + i % 2; }
};

// Buffers that stages go through, one after another; they belong to a team or to the whole block. copy(to) asks for
// the copies of the next stage.
template <int FLOATS, int BUFFERS, bool OF_BLOCK, typename Copy>
struct Pipeline {
    float* shared;
    Copy copy;
    int asked = 0, taken = 0;

    __device__ Pipeline(float* shared, Copy copy) : shared(shared), copy(copy) {
        for (int stage = 0; stage < BUFFERS - 1; ++stage) ask();
    }
    __device__ float* next(int& turn) {
        float* buffer = shared + turn * FLOATS;
        turn = turn == BUFFERS - 1 ? 0 : turn + 1;
        return buffer;
    }
    __device__ void ask() {
        copy(next(asked));
        end_of_group();
    }
    // The oldest stage, arrived for all threads. They are done with the one before, so that another can be asked for.
    __device__ const float* take() {
        await_groups<BUFFERS - 2>();
        if (OF_BLOCK) {
            __syncthreads();
        } else {
            team_barrier<TEAM>(threadIdx.x / TEAM);
        }
        ask();
        return next(taken);
    }
};

// COUNT numbers as two TF32s each, for 3xTF32: the rounded number, and what that leaves.
template <int COUNT>
struct Parts {
    unsigned high[COUNT], low[COUNT];
    __device__ explicit Parts(const unsigned (&bits)[COUNT]) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            high[i] = (bits[i] + HALF) & SEEN;
            low[i] = __float_as_uint(__uint_as_float(bits[i]) - __uint_as_float(high[i]));
        }
    }
};

template <class A, class B>
struct Product {
    static constexpr int HIGH = A::SIZE / 2, WIDE = B::SIZE / 2;     // of a warp's part
    static constexpr int DOWN = HIGH / 16, ACROSS = WIDE / 8;        // its pieces
    float sums[DOWN][ACROSS][4] = {};
    Place me;
    typename A::Left left{me.down * HIGH, me};
    typename B::Right right{me.across * WIDE, me};

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) sum(i) = 0.0f;
    }
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

    // Add the products of a stage of A and a stage of B to the sums. The tensor cores round toward zero, which adds up
    // over many sums: with PRODUCTS 3 those of 16 k begin at zero and are added by an ordinary addition.
    __device__ void add(const float* a, const float* b) {
        if constexpr (SHORT) {
#pragma unroll
            for (int k = 0; k < DEPTH; k += 8) {
                unsigned all[2 * ACROSS];
                read_right(all, b, k);
#pragma unroll
                for (int i = 0; i < DOWN; ++i) {
                    unsigned piece[4];
                    left.read(piece, a, i, k);
                    multiply(sums[i], piece, all);
                }
            }
        } else {
#pragma unroll
            for (int half = 0; half < DEPTH; half += 16) {
                unsigned all[2][2 * ACROSS];
                read_right(all[0], b, half);
                read_right(all[1], b, half + 8);
#pragma unroll
                for (int i = 0; i < DOWN; ++i) {
                    float fresh[ACROSS][4] = {};
#pragma unroll
                    for (int k = 0; k < 2; ++k) {
                        unsigned piece[4];
                        left.read(piece, a, i, half + 8 * k);
                        const Parts<4> x(piece);
                        const Parts<2 * ACROSS> y(all[k]);
                        multiply(fresh, x.low, y.high);  // the small terms first
                        multiply(fresh, x.high, y.low);
                        multiply(fresh, x.high, y.high);
                    }
#pragma unroll
                    for (int n = 0; n < 4 * ACROSS; ++n) sums[i][n / 4][n % 4] += fresh[n / 4][n % 4];
                }
            }
        }
    }
    __device__ void read_right(unsigned (&all)[2 * ACROSS], const float* b, int k) const {
#pragma unroll
        for (int j = 0; j < ACROSS; j += 2) right.read(all + 2 * j, b, j, k);
    }
    // One piece of A with all of B.
    __device__ static void multiply(float (&c)[ACROSS][4], const unsigned (&a)[4], const unsigned (&b)[2 * ACROSS]) {
#pragma unroll
        for (int j = 0; j < ACROSS; ++j) mma(c[j], a[0], a[1], a[2], a[3], b[2 * j], b[2 * j + 1]);
    }

    // Leave the sums of one team in shared memory, and add them to another one's: COUNT x TEAM numbers.
    static constexpr int COUNT = DOWN * ACROSS * 4;
    __device__ float& sum(int i) { return sums[i / (4 * ACROSS)][i / 4 % ACROSS][i % 4]; }
    __device__ void leave(float* shared) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) shared[i * TEAM + me.thread] = sum(i);
    }
    __device__ void add_left(const float* shared) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) sum(i) += shared[i * TEAM + me.thread];
    }

    // work(row, column, the sums of that and the next column), for all that this lane has in an n-th of the rows.
    template <typename Work>
    __device__ void for_each_pair(Work work, int n = 1, int part = 0) {
#pragma unroll
        for (int i = 0; i < 2 * DOWN; ++i) {
            if (i * n / (2 * DOWN) != part) continue;
#pragma unroll
            for (int j = 0; j < ACROSS; ++j) {
                work(me.down * HIGH + A::row(i, me.group), me.across * WIDE + 8 * j + 2 * me.fourth,
                     &sums[i / 2][j][i % 2 * 2]);
            }
        }
    }
};
