"""The proof on a card: the same step on the simulated GPU and through CuPy, counted operation by operation."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

import nnlab
from nnlab.nn.losses import mse

NETWORKS = {
    "2-8-1": ([2, 8, 1], 4),
    "6-64-1": ([6, 64, 1], 321),
    "simba": ([2, 64, 64, 128, 64, 32, 32, 32, 1], 40_000),
}
# the simulated GPU's name of an operation -> the name of CuPy's kernel
NAMES = {"divide": "true_divide", "astype": "copy", "zeros": "memset"}
# what the libraries add to one operation of ours: split products, products of one column, second passes of a sum
ADDED = re.compile(r"splitk|gemv|dot_kernel|reduce_1Block|cub|Reduce", re.IGNORECASE)


def receipt_of(b, sizes, rows):
    rng = np.random.default_rng(0)
    model = nnlab.nn.mlp(sizes, backend=b, rng=rng)
    hosts = [rng.standard_normal((rows, n)).astype("float32") for n in (sizes[0], sizes[-1])]
    optimizer = nnlab.training.SGD()
    optimizer.prepare(model.parameters)

    def step():
        x, y = (b.asarray(host) for host in hosts)
        loss, gradient = mse(model(x), y)
        model.backward(gradient, to_input=False)
        optimizer.update(model.parameters, model.gradients, 1e-3)
        b.synchronize()
        return float(loss)

    step()
    step()
    with b.measure() as receipt:
        step()
    return receipt


@pytest.mark.gpu
@pytest.mark.parametrize("name", NETWORKS)
def test_counts_are_those_of_the_card(name):
    usable, reason = nnlab.gpu_available()
    if not usable:
        pytest.skip(reason)
    card = receipt_of(nnlab.backend("cupy"), *NETWORKS[name])
    sim = receipt_of(nnlab.backend("sim"), *NETWORKS[name])
    if card.launches is None:
        pytest.skip("cupti-python is not installed: nothing counts the card's launches")
    print(card, card.by_operation(), sim, sim.by_operation(), sep="\n")  # shown where an assert below fails
    for count in ("h2d_copies", "h2d_bytes", "d2h_copies", "d2h_bytes", "syncs", "waits"):
        assert card.counts[count] == sim.counts[count], count
    launched, expected = Counter(card.by_operation()), Counter()
    for operation, times in sim.by_operation().items():
        expected[NAMES.get(operation, operation)] += times
    added = {operation for operation in launched if operation not in expected}
    assert all(ADDED.search(operation) for operation in added), added
    sums = sum(times for operation, times in launched.items() if re.search(r"cub|Reduce", operation))
    launched["sum"] += min(sums, expected["sum"] - launched["sum"])  # CUB's kernels carry its own names
    assert {operation: launched[operation] for operation in expected} == dict(expected)
    workspaces = sums  # a sum through CUB asks for a workspace
    asked = (receipt.allocations + receipt.pool_hits for receipt in (card, sim))
    assert next(asked) - next(asked) in range(workspaces + 1)
