"""What was measured, as a table and as a chart."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from nnlab.files import atomic_write


def table(record: dict[str, Any]) -> str:
    """Microseconds a step by contestant: median, spread (a quarter of the rounds lie outside each end), accuracy."""
    lines = []
    for name, job in record["jobs"].items():
        lines.append(
            f"{name}: {job['weights']:,} weights, {job['rows']:,} rows; NumPy float32 is off by "
            f"{off_by(job['numpy_float32_distance'])}"
        )
        lines.append(_line("", "step, us", "spread", "forward, us", "off by"))
        order = sorted(job["contestants"].items(), key=lambda item: statistics.median(item[1]["train"]))
        for who, found in order:
            low, middle, high = quartiles(found["train"])
            forward = f"{1e6 * statistics.median(found['forward']):,.2f}" if "forward" in found else "-"
            spread = f"{1e6 * low:,.2f}-{1e6 * high:,.2f}"
            lines.append(_line(who, f"{1e6 * middle:,.2f}", spread, forward, off_by(found["distance"])))
        lines += [f"  {who:42} left out: {why}" for who, why in job["left_out"].items()]
        lines += [f"  {line}" for line in standings(job)]
    return "\n".join(lines)


def _line(who: str, step: str, spread: str, forward: str, off: str) -> str:
    return f"  {who:42} {step:>12} {spread:>22} {forward:>12} {off:>10}"


def off_by(distance: float | None) -> str:
    """A distance from float64; one that is not finite is None."""
    return "nan" if distance is None else f"{distance:.1e}"


def precision(who: str) -> str:
    """What a contestant multiplies in."""
    return "TF32" if "tf32" in who.lower() else "float32"


def standings(job: dict[str, Any]) -> list[str]:
    """nnlab's engines against the best of the others in the same precision, and against what the card could do."""
    median = {who: statistics.median(found["train"]) for who, found in job["contestants"].items()}
    lines = []
    for kind in ("float32", "TF32"):
        ours, others = (
            {who: time for who, time in median.items() if who.startswith("nnlab") == own and precision(who) == kind}
            for own in (True, False)
        )
        floor = job.get("floors", {}).get(kind)
        rival = min(others, key=others.__getitem__, default=None)
        for who, seconds in sorted(ours.items(), key=lambda item: item[1]):
            told = [] if rival is None else [f"{others[rival] / seconds:.2f} times as fast as {rival}"]
            if floor is not None:
                told.append(f"{floor / seconds:.1%} of what the card multiplies at most")
            if told:
                lines.append(f"{who}, {kind}: {'; '.join(told)}")
    return lines


def quartiles(seconds: list[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    if len(seconds) < 2:
        return seconds[0], seconds[0], seconds[0]
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return low, middle, high


def check_chart_name(path: Path) -> None:
    """Raise ValueError where no chart can be drawn into a file of that name."""
    from matplotlib.backend_bases import FigureCanvasBase

    if path.suffix.removeprefix(".").lower() not in FigureCanvasBase.get_supported_filetypes():
        raise ValueError(f"{path}: no chart can be drawn in such a file; end the name in .png, .svg or .pdf")


def chart(record: dict[str, Any], path: Path) -> None:
    """A bar per contestant and job on a logarithmic axis; nnlab's bars are hatched as well as coloured.

    Nothing is drawn where nobody could be measured.
    """
    from matplotlib.figure import Figure

    jobs = {name: job for name, job in record["jobs"].items() if job["contestants"]}
    if not jobs:
        return
    figure = Figure(
        figsize=(9, 1 + sum(0.6 + 0.28 * len(job["contestants"]) for job in jobs.values())), layout="constrained"
    )
    ratios = [len(job["contestants"]) for job in jobs.values()]
    axes = figure.subplots(len(jobs), 1, squeeze=False, height_ratios=ratios)[:, 0]
    for axis, (name, job) in zip(axes, jobs.items(), strict=True):
        order = sorted(job["contestants"].items(), key=lambda item: -statistics.median(item[1]["train"]))
        for place, (who, found) in enumerate(order):
            low, middle, high = (1e6 * value for value in quartiles(found["train"]))
            own = who.startswith("nnlab")
            axis.barh(
                place,
                middle,
                color="#0072b2" if own else "#bbbbbb",
                hatch="//" if own else None,
                xerr=[[middle - low], [high - middle]],
            )
            axis.text(high, place, f"  {middle:,.0f}" if middle >= 100 else f"  {middle:.3g}", va="center", fontsize=8)
        axis.set_yticks(range(len(order)), [who for who, _ in order], fontsize=8)
        axis.set_xscale("log")
        axis.margins(x=0.15)
        axis.set_title(f"{name}: microseconds a training step", fontsize=10, loc="left")
    with atomic_write(path) as file:
        figure.savefig(file, dpi=120, format=path.suffix.removeprefix("."))
