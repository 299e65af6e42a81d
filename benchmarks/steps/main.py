"""One command from jobs to table, chart and JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import nnlab
from benchmarks.steps import measure, report
from benchmarks.steps.contestant import Field
from benchmarks.steps.jobs import JOBS
from nnlab.errors import BackendUnavailable, UnknownName
from nnlab.files import atomic_write


def bench(
    *,
    device: str | None,
    jobs: list[str] | None,
    only: list[str] | None,
    rounds: int,
    json_file: Path | None,
    chart_file: Path | None,
) -> int:
    """Measure, print the table; what is written is complete after every job, should the run be stopped."""
    for name in jobs or ():
        if name not in JOBS:
            raise UnknownName("job", name, JOBS)
    if rounds < 1:
        raise ValueError(f"rounds must be 1 or more, not {rounds}")
    if chart_file is not None:
        report.check_chart_name(chart_file)
    if device != "cpu":
        usable, reason = nnlab.gpu_available()
        if device == "gpu" and not usable:
            raise BackendUnavailable(f"{reason} nnlab bench --device cpu times this machine's processor.")
        device = "gpu" if usable else "cpu"
    everyone, missing = measure.fields(device)
    if missing:
        print(f"not installed, so not measured: {', '.join(missing)}")
    if only:
        everyone = _named(everyone, only)
    record: dict[str, Any] = {"made": measure.environment(device), "device": device, "rounds": rounds, "jobs": {}}
    for name in dict.fromkeys(jobs or JOBS):  # once each
        job = measure.measure(JOBS[name], device, everyone, rounds, lambda text: print(text, file=sys.stderr))
        record["jobs"][name] = job
        print(report.table({"jobs": {name: job}}), flush=True)
        if json_file is not None:
            with atomic_write(json_file) as file:
                file.write((json.dumps(record, indent=1) + "\n").encode())
        if chart_file is not None:
            report.chart(record, chart_file)
    if not any(job["contestants"] for job in record["jobs"].values()):
        raise RuntimeError("nobody could be measured; the table says why")
    return 0


def _named(everyone: Field, words: list[str]) -> Field:
    """Those with any of the words in their names. Raises UnknownName for a word that nobody has."""
    for word in words:
        if not any(word in name for name in everyone):
            raise UnknownName("competitor", word, everyone)
    return {name: make for name, make in everyone.items() if any(word in name for word in words)}
