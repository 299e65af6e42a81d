"""Recording launches into a CUDA graph, and telling in words what cannot be recorded."""

from __future__ import annotations

import re
import traceback
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nnlab.backends import cupy_blas
from nnlab.backends.base import Graph
from nnlab.backends.cupy_measure import meters
from nnlab.errors import CaptureError

graphs: weakref.WeakSet[CupyGraph] = weakref.WeakSet()  # alive, with memory of their own

# what stands in the refused line, what that is, and what to use instead; the first that fits is told
_CURES = (
    (r"@|\b(?:dot|matmul|einsum|tensordot)\(", "a matrix product through CuPy", "backend.matmul(a, b, out=...)"),
    (r"random|(?:normal|uniform|randn?)\(", "a random draw", "draw before recording, into a fixed buffer"),
    (r"(?:to_host|asnumpy|\.get)\(", "a copy to the host", "read the array after graph.replay()"),
    (r"(?:asarray|\.array|\.set)\(", "a copy from the host", "upload before recording, into a fixed buffer"),
    (
        r"(?:float|int|bool|\.item|print|repr)\(|\b(?:if|while)\b",
        "reading a value on the host",
        "keep it on the device and read it after graph.replay()",
    ),
    (r"synchronize\(", "a wait for the device", "wait after graph.replay()"),
    (r"nonzero\(|\[.*[<>=]=?.*\]", "a selection whose size the host must know", "xp.where"),
)
_NNLAB = str(Path(__file__).resolve().parents[1])
_BY_TEXT = (("cuBLAS", 0), ("cuRAND", 1))


class CupyGraph(Graph):
    """A captured CUDA graph, the buffers that live in it, and cuBLAS's workspace."""

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self.graph: Any = None
        self.workspace: Any = None
        graphs.add(self)

    def replay(self) -> None:
        if self.graph is None:
            raise CaptureError("this graph is not finished: call replay() after the `with backend.capture()` block")
        self.graph.launch()
        for meter in meters:
            meter.replayed()

    def dot(self) -> str:
        """The graph's nodes in the DOT language, for a look at what was recorded."""
        return str(self.graph.debug_dot_str())


@contextmanager
def capture(cupy: Any) -> Iterator[CupyGraph]:
    """Record the block on a stream of its own. Its arrays come from a pool of its own, which nothing else uses."""
    graph = CupyGraph(cupy.cuda.MemoryPool())
    stream = cupy.cuda.Stream(non_blocking=True)
    with (
        cupy_blas.handle(cupy).recording(stream.ptr) as graph.workspace,
        stream,
        cupy.cuda.using_allocator(graph.pool.malloc),
    ):
        stream.begin_capture()
        try:
            yield graph
        except Exception as error:
            _abandon(stream)
            refused = refusal(error)
            if refused is None:
                raise
            raise refused from error
        except BaseException:
            _abandon(stream)
            raise
        graph.graph = stream.end_capture()


def refuse_in_capture(cupy: Any, operation: str, cure: str) -> None:
    """Raise CaptureError if the current stream is recording: the doors and waits call this."""
    if cupy.cuda.get_current_stream().is_capturing():
        raise CaptureError(f"{operation} cannot be recorded into a graph; instead: {cure}")


def refusal(error: Exception) -> CaptureError | None:
    """What the learner's line asked for that a graph cannot hold; None for an error of another kind."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, CaptureError) or not re.search(r"captur|cuBLAS|cuRAND", text, re.IGNORECASE):
        return None
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_the_learners(frame.filename)]
    line = frames[-1].line or "" if frames else ""
    told = next((index for word, index in _BY_TEXT if word in text), None)
    if told is None:
        told = next((i for i, (pattern, _, _) in enumerate(_CURES) if re.search(pattern, line)), None)
    where = f" (line {frames[-1].lineno}: {line})" if frames else ""
    if told is None:
        return CaptureError(f"this cannot be recorded into a graph{where}: {error}; do it before or after, outside")
    _, operation, cure = _CURES[told]
    return CaptureError(f"{operation}{where} cannot be recorded into a graph; instead: {cure}")


def _is_the_learners(filename: str) -> bool:
    return not (filename.startswith(_NNLAB) or "site-packages" in filename or filename.endswith(".pyx"))


def _abandon(stream: Any) -> None:
    """End a recording that failed, so that the stream works again."""
    with suppress(Exception):  # CUDA reports the failure once more while it ends the recording
        stream.end_capture()
