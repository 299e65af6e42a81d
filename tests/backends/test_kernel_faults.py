"""What the interpreter finds wrong with a kernel: races, accesses out of range, missed barriers."""

from __future__ import annotations

import numpy as np
import pytest

from nnlab.backends.kernels import cuda
from nnlab.errors import EngineCannot, KernelFault


def test_a_race_between_blocks_is_told_by_line(off_card):
    b = off_card

    @b.kernel
    def total(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[0] += x[i]  # planted

    with pytest.raises(KernelFault) as caught:
        total[2, 2](b.asarray(np.ones(4)), b.asarray(np.zeros(1)))
    message = str(caught.value)
    for part in ("kernel total", "a race for out[0]", "# planted", "thread 0 of block 0 writes", "cuda.atomic_add"):
        assert part in message
    assert total.report.races


def test_a_race_inside_a_block_asks_for_a_barrier(off_card):
    b = off_card

    @b.kernel
    def shift(x):
        i = cuda.grid(1)
        value = x[(i + 1) % x.size]
        x[i] = value

    @b.kernel
    def shift_after_a_barrier(x):
        i = cuda.grid(1)
        value = x[(i + 1) % x.size]
        cuda.syncthreads()
        x[i] = value

    x = b.asarray(np.arange(4.0))
    with pytest.raises(KernelFault, match=r"thread . of block 0 reads it.*thread . of block 0 writes it.*syncthreads"):
        shift[1, 4](x)
    x = b.asarray(np.arange(4.0))
    shift_after_a_barrier[1, 4](x)
    np.testing.assert_array_equal(b.to_host(x), [1.0, 2.0, 3.0, 0.0])
    with pytest.raises(KernelFault, match="Blocks run in any order"):
        shift_after_a_barrier[2, 2](x)


def test_a_race_after_a_barrier_is_found_too(off_card):
    b = off_card

    @b.kernel
    def again(x):
        i = cuda.grid(1)
        if i == 0:
            x[0] = 1.0
        cuda.syncthreads()
        if i > 0:
            x[0] = 2.0  # planted

    with pytest.raises(KernelFault, match=r"thread 1 of block 0 writes.*thread 2 of block 0 writes.*# planted"):
        again[1, 3](b.asarray(np.zeros(1)))


def test_no_race_where_threads_only_read_or_add_atomically(off_card):
    b = off_card

    @b.kernel
    def count(x, out):
        cuda.atomic_add(out, 0, x[0])

    out = b.asarray(np.zeros(1))
    count[3, 4](b.asarray(np.ones(1)), out)
    np.testing.assert_array_equal(b.to_host(out), 12.0)
    assert (count.report.atomics, count.report.races) == (12, [])


def test_reading_what_others_add_to_is_a_race(off_card):
    b = off_card

    @b.kernel
    def late(out, copy):
        cuda.atomic_add(out, 0, 1.0)
        copy[cuda.grid(1)] = out[0]

    with pytest.raises(KernelFault, match=r"adds atomically to it.*reads it|reads it.*adds atomically to it"):
        late[1, 2](b.asarray(np.zeros(1)), b.asarray(np.zeros(2)))


def test_two_names_for_the_same_memory_race_too(off_card):
    b = off_card

    @b.kernel
    def copy(x, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i]

    x = b.asarray(np.arange(5.0))
    with pytest.raises(KernelFault, match="a race for"):
        copy[1, 4](x[:-1], x[1:])


def test_an_access_out_of_range_is_told_by_line(off_card):
    b = off_card

    @b.kernel
    def unguarded(out):
        i = cuda.grid(1)
        out[i] = 1.0  # planted

    with pytest.raises(IndexError) as caught:
        unguarded[2, 4](b.asarray(np.zeros(6)))
    message = str(caught.value)
    for part in ("kernel unguarded", "# planted", "thread 6 of block 1 writes out[6]", "6 elements, 0 to 5", "`if`"):
        assert part in message

    @b.kernel
    def before_the_first(x, out):
        i = cuda.grid(1)
        out[i] = x[i - 1]

    with pytest.raises(IndexError, match=r"thread 0 of block 0 reads x\[-1\]"):
        before_the_first[1, 4](b.asarray(np.zeros(4)), b.asarray(np.zeros(4)))

    @b.kernel
    def wrong_column(x):
        x[0, 3] = 1.0

    with pytest.raises(IndexError, match=r"writes x\[0, 3\], but axis 1 of x has 3 elements"):
        wrong_column[1, 1](b.asarray(np.zeros((2, 3))))

    @b.kernel
    def adds_outside(x):
        cuda.atomic_add(x, 9, 1.0)  # planted

    with pytest.raises(IndexError, match=r"# planted.*adds atomically to x\[9\]"):
        adds_outside[1, 1](b.asarray(np.zeros(2)))


def test_a_barrier_that_not_all_threads_reach(off_card):
    b = off_card

    @b.kernel
    def some(x):
        i = cuda.grid(1)
        if i < 3:
            cuda.syncthreads()
        x[i] = 0.0

    @b.kernel
    def early(x):
        i = cuda.grid(1)
        if i >= 3:
            return
        cuda.syncthreads()
        x[i] = 0.0

    for kernel in (some, early):
        with pytest.raises(KernelFault, match=r"3 of the 4 threads of block 0 wait there"):
            kernel[1, 4](b.asarray(np.zeros(4)))


def test_shared_memory_holds_nothing_before_it_is_written(off_card):
    b = off_card

    @b.kernel
    def careless(out):
        part = cuda.shared_memory(cuda.float32, 4)
        out[cuda.grid(1)] = part[cuda.threadIdx.x]

    out = b.asarray(np.zeros(4))
    careless[1, 4](out)
    assert np.isnan(b.to_host(out)).all()


def test_what_a_kernel_may_not_do(off_card):
    b = off_card

    @b.kernel
    def whole(x):
        x[:] = 0.0

    @b.kernel
    def row(x):
        x[0] = 0.0

    @b.kernel
    def fraction(x, n):
        n[0] = x[0, 0]

    x = b.asarray(np.zeros((2, 2)))
    with pytest.raises(TypeError, match="one element by whole numbers"):
        whole[1, 1](x)
    with pytest.raises(TypeError, match="2 axes; a kernel writes one element"):
        row[1, 1](x)
    with pytest.raises(TypeError, match=r"holds int64, and .* is a float"):
        fraction[1, 1](x, b.asarray(np.zeros(1, int)))
    with pytest.raises(EngineCannot, match="too many to interpret"):
        row[2000, 1024](x)
    with pytest.raises(RuntimeError, match="inside a kernel"):
        cuda.grid(1)


def test_a_kernel_knows_only_its_arguments_and_returns_nothing(off_card):
    b = off_card
    table = b.asarray([1.0, 2.0])

    @b.kernel
    def looks_outside(x):
        x[cuda.grid(1)] = table[0]

    @b.kernel
    def gives_back(x):
        return x[cuda.grid(1)]

    x = b.asarray([5.0, 6.0])
    with pytest.raises(TypeError, match="looks_outside uses the array table from outside; make it an argument"):
        looks_outside[1, 2](x)
    with pytest.raises(TypeError, match="gives_back returns a value"):
        gives_back[1, 2](x)
    assert b.to_host(x).tolist() == [5.0, 6.0]


y = np.zeros(3)  # an array of the learner's, with the name of an attribute that kernels use


def test_an_array_named_like_an_attribute_is_not_used_from_outside(off_card):
    @off_card.kernel
    def second_axis(out):
        out[cuda.threadIdx.y] = 1.0

    out = off_card.asarray(np.zeros(3))
    second_axis[1, (1, 3)](out)
    assert off_card.to_host(out).tolist() == [1.0, 1.0, 1.0]
