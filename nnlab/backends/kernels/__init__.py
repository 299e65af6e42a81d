"""Kernels as plain Python functions: interpreted thread by thread off the card, compiled on it.

from nnlab.backends.kernels import cuda

@b.kernel
def axpy(a, x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = a * x[i] + y[i]

axpy[blocks, threads_per_block](2.0, x, y, out)
"""

from nnlab.backends.kernels.launching import InterpretedKernel, ReferenceKernel
from nnlab.backends.kernels.namespace import cuda
from nnlab.backends.kernels.report import KernelReport

__all__ = ["InterpretedKernel", "KernelReport", "ReferenceKernel", "cuda"]
