"""The graph engine's kernels compiled for the host: a step that runs them without a GPU, for small networks."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from nnlab.engines.fused_cupy import in_kernel_order
from nnlab.engines.fused_plan import KERNELS
from nnlab.engines.graph_plan import SOURCES

HERE = Path(__file__).parent
ARRAYS = ("arrays", "x", "y", "batches", "factors", "now", "losses", "work")
ENTRY = """
struct Given {
    float** arrays; const float *x, *y; const int* batches; const float* factors; int* now; float *losses, *work;
};
static Given given;
static void run_on(int blocks, void (*body)(), unsigned seed) {
    for (the_block = 0; the_block < blocks; ++the_block) launch(body, seed ? seed + the_block : 0);
}
extern "C" void step(const Given* from, unsigned seed) {
    given = *from;
LAUNCHES
}
"""
SHIM = """
#include "CLUSTER_H"
static int the_block;
#undef blockIdx
#define blockIdx (Index{the_block})
"""


def compiled(plan, folder):
    """The plan's kernels as a shared library."""
    lines, tensor, weights = [], 0, []
    for bias in plan.chain.biases:
        weights.append((tensor, tensor + bias))
        tensor += 1 + bias
    apart = 1 + plan.run.memories
    for launch in plan.launches:
        weight, bias = (f"given.arrays[{place * apart}]" for place in weights[launch.layer])
        call = {
            "forward": f"{weight}, {bias}, given.x, given.y, given.batches, given.now, given.work",
            "backward": f"{weight}, given.work",
            "gradients": "given.arrays, given.x, given.batches, given.factors, given.now, given.losses, given.work",
            "update_all": "given.arrays, given.factors, given.now, given.losses, given.work",
        }[launch.kernel]
        lines.append(f"    run_on({launch.blocks}, [] {{ {launch.name}({call}); }}, seed);")
    files = [name for name in SOURCES if name != "cluster.cuh"]
    kernels = "".join((KERNELS / name).read_text("utf-8") for name in files)
    shared = f"#define SHARED_BYTES {max(launch.shared_bytes for launch in plan.launches)}\n"
    shim = SHIM.replace("CLUSTER_H", str(HERE / "cluster.h"))
    program = folder / "step.cpp"
    program.write_text(plan.sizes + shared + shim + kernels + ENTRY.replace("LAUNCHES", "\n".join(lines)), "utf-8")
    library = folder / "step.so"
    command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o", library, program]
    subprocess.run(command, check=True, capture_output=True)
    return ctypes.CDLL(str(library))


class HostStep:
    """A call takes one step. seed: of the order in which threads get their turns; 0 takes them one after another."""

    def __init__(self, plan, state, x, y, library, seed):
        self.library, self.seed = library, seed
        self.arrays = in_kernel_order(state)
        self.addresses = (ctypes.c_void_p * len(self.arrays))(*(array.ctypes.data for array in self.arrays))
        padded = np.zeros((len(x), -(-x.shape[1] // 4) * 4), np.float32)
        padded[:, : x.shape[1]] = x
        rows = state.batches(len(x), 0, state.steps)
        table = [state.optimizer.factors(1 + i, state.schedule(i)) for i in range(state.steps)]
        self.losses = np.full(state.steps, np.nan, np.float32)
        self.held = {
            "x": padded,
            "y": np.ascontiguousarray(y),
            "batches": np.zeros(1, np.int32) if rows is None else rows.astype(np.int32),
            "factors": np.array(table, np.float32),
            "now": np.zeros(2, np.int32),
            "losses": self.losses,
            "work": np.zeros(plan.work_floats, np.float32),
        }

    def __call__(self):
        pointers = [self.addresses, *(ctypes.c_void_p(self.held[name].ctypes.data) for name in ARRAYS[1:])]
        given = (ctypes.c_void_p * len(ARRAYS))(ctypes.addressof(self.addresses), *(p.value for p in pointers[1:]))
        self.library.step(ctypes.byref(given), ctypes.c_uint(self.seed))
