"""The fused engine's kernels for wide networks compiled for the host: a Loop that runs them without a GPU."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

from nnlab.engines.fused_plan import KERNELS, SOURCES
from nnlab.engines.fused_products import Products

HERE = Path(__file__).parent
RUN = """
extern "C" void run(const char* name, void** with, unsigned across, unsigned down, unsigned deep,
                    int threads, unsigned seed) {
    TABLE
    run_grid(across, down, deep, threads, seed);
}
"""


def compiled(plan, folder):
    """The plan's kernels as a shared library."""
    files = [name for name in SOURCES["gemm"] if name != "async.cuh"]
    listed = re.findall(r"^(FORWARD|BACKWARD|WEIGHTS)\((\d+)\)$", plan.source, re.MULTILINE)
    names = [f"{kind.lower()}_{layer}" for kind, layer in listed]
    names += ["load", "first_layer", "head", "first_gradients", "update_all"]
    table = "\n".join(
        f'if (!strcmp(name, "{name}")) body_of_kernel = [with] {{ call({name}, with); }};' for name in names
    )
    program = folder / "products.cpp"
    text = "".join((KERNELS / name).read_text("utf-8") for name in files)
    text += "".join(f"{kind}({layer})\n" for kind, layer in listed)
    program.write_text(
        f'{plan.sizes}#include "{HERE / "products.h"}"\n{text}{RUN.replace("TABLE", table)}', encoding="utf-8"
    )
    library = folder / "products.so"
    command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o", library, program]
    subprocess.run(command, check=True, capture_output=True)
    return ctypes.CDLL(str(library))


class HostProducts(Products):
    """seed: of the order in which threads get their turns; 0 takes them one after another."""

    def __init__(self, plan, state, x, y, library, seed):
        self.library, self.seed = library, seed
        super().__init__(plan, state, x, y)

    def kernel(self, name, blocks, threads, floats):
        assert floats <= 60_000

        def run(*arrays):
            addresses = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
            self.library.run(name.encode(), addresses, *(*blocks, 1)[:3], threads, ctypes.c_uint(self.seed))

        return run

    def address(self, array):
        return array.ctypes.data
