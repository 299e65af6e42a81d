"""Running a kernel thread by thread, block by block, barrier by barrier."""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import textwrap
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nnlab.backends.kernels.namespace import Index, Thread, cuda
from nnlab.backends.kernels.races import ATOMIC, READ, Access, Watch
from nnlab.backends.kernels.report import KernelReport
from nnlab.backends.kernels.watched import Watched
from nnlab.errors import EngineCannot, KernelFault

MOST_THREADS = 2**17

Size = tuple[int, int, int]


class Block:
    """One block of a launch: its shared memory, and how many barriers it has passed."""

    def __init__(self, run: Run, number: int, shape: Index, grid: Index) -> None:
        self.run, self.number, self.shape, self.grid = run, number, shape, grid
        self.phase = 0
        self.cells: dict[int, list[Access]] = {}
        self._shared: dict[int, Watched] = {}

    def shared(self, call: int, line: int, dtype: Any, size: int) -> Watched:
        """The array that this call of shared_memory gives to all threads of the block."""
        if call not in self._shared:
            data = np.empty(size, dtype)
            data.fill(np.nan if data.dtype.kind == "f" else 0)  # nothing may be read before it was written
            self._shared[call] = Watched(self.run, f"shared memory of line {line}", data, shared=True)
        return self._shared[call]


class Run:
    """One interpreted launch: the accesses so far, and the counts."""

    def __init__(self, function: Callable[..., None], blocks: Size, threads: Size) -> None:
        self.name = function.__name__
        self._file = function.__code__.co_filename
        self.cells: dict[int, list[Access]] = {}
        self.watch = Watch()
        self.report = KernelReport(self.name, int(np.prod(blocks)), int(np.prod(threads)))
        self._reads: Counter[int] = Counter()  # by thread
        self._writes: Counter[int] = Counter()

    def text(self, line: int) -> str:
        """The kernel's source in that line."""
        return linecache.getline(self._file, line).strip()

    def count(self, kind: str, thread: int, shared: bool) -> None:
        report = self.report
        if shared:
            report.shared_reads += kind == READ
            report.shared_writes += kind != READ
        elif kind == READ:
            report.reads += 1
            self._reads[thread] += 1
        else:
            report.writes += kind != ATOMIC
            report.atomics += kind == ATOMIC
            self._writes[thread] += 1

    def finish(self) -> None:
        """Fill the rest of the report in. Raises KernelFault for races."""
        self.report.most_reads = max(self._reads.values(), default=0)
        self.report.most_writes = max(self._writes.values(), default=0)
        self.report.races = self.watch.told(self.name, self.text)
        if self.report.races:
            raise KernelFault("\n".join(self.report.races))


def interpret(function: Callable[..., None], blocks: Size, threads: Size, arguments: dict[str, Any]) -> Run:
    """Run the kernel on NumPy arrays and typed numbers; `run.finish()` raises for the races it saw.

    Raises IndexError for an access out of range, KernelFault for a barrier that not all threads of a block reach,
    EngineCannot for more than 131,072 threads, TypeError for an array that is no argument and for a value returned.
    """
    run = Run(function, blocks, threads)
    if run.report.threads > MOST_THREADS:
        raise EngineCannot(
            f"kernel {run.name}: {run.report.threads:,} threads are too many to interpret one by one, at most "
            f"{MOST_THREADS:,}; try it on fewer elements"
        )
    _require_arguments(function)
    given = [Watched(run, name, v) if isinstance(v, np.ndarray) else v for name, v in arguments.items()]
    body, waits = _with_barriers(function)
    shape, grid = Index(*threads), Index(*blocks)
    places = [Index(*place) for place in _counted(threads)]
    try:
        with np.errstate(all="ignore"):
            for number, block_place in enumerate(_counted(blocks)):
                block = Block(run, number, shape, grid)
                where = Index(*block_place)
                first = number * len(places)
                workers = [Thread(first + i, place, where, block) for i, place in enumerate(places)]
                if waits:
                    _run_phases(run, block, [(worker, body(*given)) for worker in workers])
                else:
                    for worker in workers:
                        cuda._thread = worker
                        if body(*given) is not None and run.name != "<lambda>":  # which can do nothing but return
                            raise TypeError(f"kernel {run.name} returns a value; it must write into an array instead")
    finally:
        cuda._thread = None
    return run


def _require_arguments(function: Callable[..., None]) -> None:
    """Raise TypeError for an array that the kernel uses without having been given it: no card would find it."""
    outside = inspect.getclosurevars(function)  # its globals count attributes too: the x of threadIdx.x
    used = {step.argval for step in dis.get_instructions(function) if step.opname == "LOAD_GLOBAL"}
    for name, value in {**{name: outside.globals.get(name) for name in used}, **outside.nonlocals}.items():
        if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic):
            raise TypeError(f"kernel {function.__name__} uses the array {name} from outside; make it an argument")


def _run_phases(run: Run, block: Block, threads: list[tuple[Thread, Iterator[int]]]) -> None:
    """Run all threads of a block from barrier to barrier."""
    live = threads
    while live:
        lines: dict[int, int] = {}
        waiting = []
        for worker, steps in live:
            cuda._thread = worker
            line = next(steps, None)
            if line is not None:
                lines[line] = worker.number
                waiting.append((worker, steps))
        if waiting and (len(waiting) < len(threads) or len(lines) > 1):
            where = " and ".join(f"line {line}" for line in sorted(lines))
            raise KernelFault(
                f"kernel {run.name}, cuda.syncthreads() in {where}: {len(waiting)} of the {len(threads)} threads of "
                f"block {block.number} wait there, the others do not. All threads of a block must reach the same "
                "barrier: keep it out of `if`, and return from the kernel only after the last one"
            )
        live = waiting
        block.phase += bool(waiting)
    run.report.barriers = max(run.report.barriers, block.phase)


def _counted(size: Size) -> Iterator[Size]:
    """All places of a grid or a block, x fastest."""
    for z in range(size[2]):
        for y in range(size[1]):
            for x in range(size[0]):
                yield x, y, z


def _with_barriers(function: Callable[..., None]) -> tuple[Callable[..., Any], bool]:
    """The function, its barriers turned into `yield`, and whether it has any."""
    if "syncthreads" not in function.__code__.co_names:
        return function, False
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise EngineCannot(
            f"kernel {function.__name__}: its source cannot be found; define it in a file or a cell"
        ) from error
    tree = ast.parse(source)
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    tree = ast.fix_missing_locations(_Barriers().visit(tree))
    known = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    exec(compile(tree, function.__code__.co_filename, "exec"), known)
    made = known[function.__name__]
    assert isinstance(made, types.FunctionType)
    return made, True


class _Barriers(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "syncthreads":
            return ast.copy_location(ast.Expr(ast.copy_location(ast.Yield(ast.Constant(node.lineno)), node)), node)
        return node
