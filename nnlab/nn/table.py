"""The readable form of a network: a table of its layers."""

from __future__ import annotations

from collections.abc import Sequence

from nnlab.backends import Backend
from nnlab.nn.layers import Activation, Layer, Linear, Sine


def layer_table(layers: Sequence[Layer], backend: Backend) -> str:
    """A line per layer: place, kind, output shape, number of parameters; then their sum and the home."""
    rows = [("layer", "kind", "output", "parameters")]
    width: int | None = None
    total = 0
    for place, layer in enumerate(layers):
        width = layer.outputs if isinstance(layer, Linear) else width
        count = sum(value.size for value in layer.parameters.values())
        total += count
        rows.append((str(place), _kind(layer), f"(rows, {width if width is not None else '?'})", f"{count:,}"))
    rows.append(("total", f"{backend.dtype} on {backend.home}", "", f"{total:,}"))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]:>{widths[3]}}" for row in rows
    ]
    rule = "-" * len(lines[0])
    return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1]])


def _kind(layer: Layer) -> str:
    if isinstance(layer, Linear):
        return f"Linear {layer.inputs} -> {layer.outputs}" + ("" if "bias" in layer.parameters else ", no bias")
    if isinstance(layer, Activation):
        return layer.name
    if isinstance(layer, Sine):
        return f"Sine omega_0={layer.omega_0:g}"
    return type(layer).__name__
