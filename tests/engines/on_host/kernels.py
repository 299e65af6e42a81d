"""The fused engine's kernels compiled for the host: a Loop that runs them without a GPU, for small networks."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from nnlab.engines.fused import Loop
from nnlab.engines.fused_cupy import in_kernel_order
from nnlab.engines.fused_plan import KERNELS, SOURCES

HERE = Path(__file__).parent
ENTRIES = {
    "loop_rows": "loop_rows(given.arrays, given.x, given.y, given.rows, given.factors, given.losses, given.steps);",
    "loop_weights": "loop_weights(given.arrays, given.memories, given.x, given.y, given.all_rows, given.rows, "
    "given.factors, given.losses, given.steps);",
    "tile": "tile(given.arrays, given.memories, given.counts, given.x, given.y, given.rows, given.factors, "
    "given.losses, given.steps);",
    "loop_grid": "loop_grid(given.arrays, given.memories, given.counts, given.x, given.y, given.all_rows, given.rows, "
    "given.factors, given.losses, given.steps);",
}
STOOD_IN = ("cluster.cuh", "grid_barrier.cuh", "grid_mail.cuh", "async.cuh")
SHIMS = {"tile": ("cluster.h", "tensor.h"), "loop_grid": ("cluster.h", "tensor.h", "mail.h")}
ENTRY = """
struct Given {
    float* const* arrays; float* memories; const float *x, *y; int all_rows; const int* rows; const float* factors;
    float* losses; int steps; unsigned* counts;
};
static Given given;
static void body() { CALL }
extern "C" void run(const Given* from, unsigned seed) { given = *from; launch(body, seed); }
"""


class Given(ctypes.Structure):
    """As in ENTRY."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("arrays", "memories", "x", "y")),
        ("all_rows", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("rows", "factors", "losses")),
        ("steps", ctypes.c_int),
        ("counts", ctypes.c_void_p),
    )


def compiled(plan, folder):
    """The plan's kernel as a shared library."""
    files = [name for name in SOURCES[plan.kernel] if name not in STOOD_IN]
    kernel = "".join((KERNELS / name).read_text("utf-8") for name in files)
    program = folder / "kernel.cpp"
    shim = "".join(f'#include "{HERE / name}"\n' for name in SHIMS.get(plan.kernel, ("cluster.h",)))
    program.write_text(plan.sizes + shim + kernel + ENTRY.replace("CALL", ENTRIES[plan.kernel]), "utf-8")
    library = folder / "kernel.so"
    command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o", library, program]
    subprocess.run(command, check=True, capture_output=True)
    return ctypes.CDLL(str(library))


class HostLoop(Loop):
    """seed: of the order in which threads get their turns; 0 takes them one after another."""

    def __init__(self, plan, state, x, y, library, seed):
        self.plan, self.seed, self.y, self.x = plan, seed, y, x
        self.library = library
        self.arrays = in_kernel_order(state)
        self.addresses = (ctypes.c_void_p * len(self.arrays))(*(array.ctypes.data for array in self.arrays))
        self.memories = np.full(plan.memory_floats + 1, np.nan, np.float32)
        self.counts = np.zeros(2, np.uint32)
        if plan.kernel in ("tile", "loop_grid"):
            self.memories = np.zeros(plan.workspace, np.float32)
        if plan.kernel in ("loop_weights", "loop_grid"):
            self.x = np.zeros((len(x) + plan.spare_rows, plan.input_stride), np.float32)
            self.x[: len(x), : x.shape[1]] = x
            if plan.chain.biases[0]:
                self.x[: len(x), x.shape[1]] = 1.0

    def launch(self, losses, factors, rows):
        rows = np.zeros(1, np.int32) if rows is None else np.ascontiguousarray(rows)
        given = Given(
            ctypes.addressof(self.addresses),
            *(array.ctypes.data for array in (self.memories, self.x, self.y)),
            len(self.y),
            *(array.ctypes.data for array in (rows, factors, losses)),
            len(losses),
            self.counts.ctypes.data,
        )
        self.library.run(ctypes.byref(given), ctypes.c_uint(self.seed))
