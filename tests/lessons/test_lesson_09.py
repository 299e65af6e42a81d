"""Lesson 09: exercises know right answers and usual mistakes, kernels compile, the widget counts threads."""

from __future__ import annotations

import ast
import importlib.util
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from nnlab.backends.kernels import cuda

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "09_write_kernels.ipynb"


def relu(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = cuda.maximum(x[i], 0.0)


def relu_without_guard(x, out):
    i = cuda.grid(1)
    out[i] = cuda.maximum(x[i], 0.0)


def relu_of_one_block(x, out):
    i = cuda.threadIdx.x
    if i < out.size and cuda.blockIdx.x == 0:
        out[i] = cuda.maximum(x[i], 0.0)


def twice(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = 2.0 * x[i]


def column_sums(x, out):
    j = cuda.grid(1)
    if j < out.size:
        for i in range(x.shape[0]):
            out[j] += x[i, j]


def column_sums_at_once(x, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        for j in range(x.shape[1]):
            cuda.atomic_add(out, j, x[i, j])


def column_sums_with_a_race(x, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        for j in range(x.shape[1]):
            out[j] += x[i, j]


CASES = [
    ("09.relu", relu, "Right."),
    ("09.relu", relu_without_guard, "guard the access"),
    ("09.relu", relu_of_one_block, "Only the first block"),
    ("09.relu", twice, "yours is [-4.0"),
    ("09.column_sums", column_sums, "Right."),
    ("09.column_sums", column_sums_at_once, "Right."),
    ("09.column_sums", column_sums_with_a_race, "a race for out[0]"),
    ("09.column_sums", lambda x, out: cuda.atomic_add(out, 0, x[0, 0] + 1.0), "yours is [16.0"),
]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


@pytest.mark.parametrize("key", ["09.relu", "09.column_sums"])
def test_an_empty_kernel_repeats_the_task(key, judged):
    judged(key, lambda x, out: ..., "Still to do: Write ")


def kernels_of_the_lesson(folder: Path):
    """The lesson's plain functions over thread indices, from a file, as the card's compiler wants their source."""
    found = []
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
            found += [
                text
                for node in functions
                if not node.decorator_list and "cuda." in (text := ast.get_source_segment(source, node))
            ]
    path = folder / "kernels_of_lesson_09.py"
    path.write_text("from nnlab.backends.kernels import cuda\n\n\n" + "\n\n\n".join(found) + "\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("kernels_of_lesson_09", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: value for name, value in vars(module).items() if callable(value)}


def test_the_kernels_of_the_lesson_turn_into_cuda_c(tmp_path):
    """Up to the card's own compiler, CuPy needs no card."""
    pytest.importorskip("cupy")
    import cupy
    from cupyx.jit import _compile, _cuda_types

    from nnlab.backends.cupy_kernels import compiled

    kernels = kernels_of_the_lesson(tmp_path)
    names = "fill_each", "square", "one_minus", "times", "tanh_backward", "spam_error", "spam_update"
    assert set(kernels) == set(names)
    number = np.dtype("float32")
    for name, kernel in kernels.items():
        types = [
            _cuda_types.Scalar(number)
            if argument in ("value", "rate")
            else _cuda_types.CArray(number, 2 if argument == "x" else 1, True, True)
            for argument in kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # cupyx.jit says that it is experimental
            function = compiled(cupy, kernel)._func
        code = _compile.transpile(function, ["__global__"], "cuda", types, _cuda_types.void).code
        assert f"void {name}(" in code
        assert "double" not in code


@pytest.fixture(scope="module")
def ui():
    pytest.importorskip("ipywidgets")
    from nnlab.lessons.widgets import Coverage

    return Coverage()


def test_the_widget_counts_threads_and_elements(ui):
    assert ui.show(blocks=13, threads=8) == "13 blocks of 8 threads: 100 of 100 elements filled; 4 threads idle"
    assert ui.show(blocks=2, threads=32) == "2 blocks of 32 threads: 64 of 100 elements filled; 0 threads idle"
    filled = sum(ui.launches[13, 8, True].filled)
    assert filled == 100


def test_the_widget_shows_what_the_interpreter_says(ui):
    said = ui.show(blocks=4, threads=32, guard="without")
    assert "28 threads write outside" in said
    assert "thread 100 of block 3 writes out[100]" in said
    assert "outside" not in ui.show(blocks=3, threads=32, guard="without")
