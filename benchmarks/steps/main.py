"""One command from jobs to table, chart and JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import nnlab
from benchmarks.steps import measure, report
from benchmarks.steps.jobs import JOBS
from nnlab.errors import UnknownName


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
    device = device or ("gpu" if nnlab.gpu_available()[0] else "cpu")
    everyone, missing = measure.fields(device)
    if only:
        names = tuple(everyone)
        everyone = {name: make for name, make in everyone.items() if any(word in name for word in only)}
        if not everyone:
            raise UnknownName("competitor", only[0], names)
    if missing:
        print(f"not installed, so not measured: {', '.join(missing)}")
    record: dict[str, Any] = {"made": measure.environment(device), "device": device, "rounds": rounds, "jobs": {}}
    for name in jobs or JOBS:
        job = measure.measure(JOBS[name], device, everyone, rounds, lambda text: print(text, file=sys.stderr))
        record["jobs"][name] = job
        print(report.table({"jobs": {name: job}}), flush=True)
        if json_file is not None:
            json_file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if chart_file is not None:
        report.chart(record, chart_file)
    return 0
