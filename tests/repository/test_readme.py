"""README, data/README and the workflows say what is there."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.steps.jobs import JOBS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?P<number>\d\d) \| (?P<question>.+?) \| (?P<minutes>\d+) \| (?P<gpu>.+?) \|$", re.MULTILINE)
ROWS = {row["number"]: row for row in ROW.finditer(README)}
LESSONS = {path.name[:2]: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
COMMANDS = ("python3 -m nnlab lab", "python3 -m nnlab test")


def test_the_table_has_all_eighteen_lessons() -> None:
    assert list(ROWS) == [f"{number:02}" for number in range(18)]


@pytest.mark.parametrize("number", list(ROWS))
def test_a_lesson_is_linked_exactly_when_it_exists(number: str) -> None:
    row = ROWS[number]
    question = re.sub(r"\[(.+)\]\(.+\)", r"\1", row["question"])
    if number in LESSONS:
        path = LESSONS[number]
        first_cell = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        minutes = re.search(r"(\d+) minutes", first_cell)
        assert minutes is not None, f"the first cell of {path.name} does not say its minutes"
        wanted = f"| {number} | [{question}]({path.relative_to(ROOT).as_posix()}) | {minutes[1]} | {row['gpu']} |"
    else:
        wanted = f"| {number} | {question} | {row['minutes']} | {row['gpu']} |"
    assert row.group() == wanted, f"the line of lesson {number} in README.md must be: {wanted}"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "data/README.md"])
def test_every_link_leads_to_a_file(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target]
    assert not [target for target in targets if not ((ROOT / page).parent / target).exists()]


def test_the_first_screen_has_a_time_lapse_a_picture_and_the_two_commands() -> None:
    first_screen = README.split("## The lessons")[0]
    shown = re.findall(r'^<img src="(data/figures/[^"]+)" width="\d+" alt="[^"]{20,}">$', first_screen, re.MULTILINE)
    assert shown == ["data/figures/cub.gif", "data/figures/cub.png"]
    assert all((ROOT / path).stat().st_size < 400_000 for path in shown)
    for command in COMMANDS:
        assert f"```\n{command}\n```" in first_screen


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL), ids=["gpu", "fit"])
def test_the_readmes_code_runs(code: str) -> None:
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout


def test_the_speed_table_says_what_was_recorded() -> None:
    jobs = json.loads((ROOT / "data" / "recordings" / "steps-h200.json").read_text(encoding="utf-8"))["jobs"]
    names = {("-".join(map(str, job.widths)), job.rows): name for name, job in JOBS.items()}
    table = re.findall(r"^\| *([\d-]*)[^|]*\| ([\d,]+) \| (float32|TF32) \| (\S+) \| (\S+) \|$", README, re.MULTILINE)
    assert len(table) == 12
    network = ""
    for widths, rows, precision, ours, other in table:
        network = widths or network
        contestants = jobs[names[network, int(rows.replace(",", ""))]]["contestants"].items()
        us = {who: 1e6 * statistics.median(found["train"]) for who, found in contestants}
        us = {who: time for who, time in us.items() if ("tf32" in who.lower()) == (precision == "TF32")}
        for shown, mine in ((ours, True), (other, False)):
            best = min(time for who, time in us.items() if who.startswith("nnlab") == mine)
            assert float(shown.replace(",", "")) == pytest.approx(best, rel=0.015)


def test_the_times_on_the_cpu_are_the_recorded_ones() -> None:
    jobs = json.loads((ROOT / "data" / "recordings" / "steps-cpu.json").read_text(encoding="utf-8"))["jobs"]
    said = re.search(r"takes (\S+) ms .*?: (\S+)\), (\S+) ms .*?: (\S+)\), and (\S+) µs .*?: (\S+)\)", README)
    assert said is not None
    for (name, unit), (ours, other) in zip(
        (("siren", 1e3), ("simba", 1e3), ("estate", 1e6)), zip(*[iter(said.groups())] * 2, strict=True), strict=True
    ):
        times = {who: unit * statistics.median(r["train"]) for who, r in jobs[name]["contestants"].items()}
        assert float(ours) == pytest.approx(times.pop("nnlab tiled"), rel=0.015)
        assert float(other) == pytest.approx(min(times.values()), rel=0.015)


def test_data_readme_names_every_file_with_its_licence() -> None:
    text = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    rows = {name: row for row, name in re.findall(r"^(\| \[(\S+)\].+)$", text, re.MULTILINE)}
    kinds = {".csv", ".gif", ".png", ".jpg"}
    files = {p.relative_to(ROOT / "data").as_posix() for p in (ROOT / "data").rglob("*") if p.suffix in kinds}
    assert set(rows) == files
    assert not [name for name, row in rows.items() if not re.search(r"CC0|CC BY 4\.0|GPL-3", row)]


def test_the_notice_of_the_email_data_stands_beside_it() -> None:
    notice = (ROOT / "data" / "email.LICENSE").read_text(encoding="utf-8")
    assert "OpenIntro" in notice
    assert "Changes made" in notice
    assert "GNU GENERAL PUBLIC LICENSE\n                       Version 3" in notice


def test_the_workflows_run_the_readmes_test_command_everywhere() -> None:
    yaml = pytest.importorskip("yaml")
    workflows = {
        path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
    }
    job = workflows["test"]["jobs"]["test"]
    assert job["strategy"]["matrix"]["system"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    for workflow in workflows.values():
        steps = workflow["jobs"]["test"]["steps"]
        assert COMMANDS[1].replace("python3", "python") in [step.get("run") for step in steps]
    assert "schedule" in workflows["newest"][True]  # YAML reads the key `on` as true


def test_ci_runs_the_readmes_test_command() -> None:
    script = ROOT / ".ci" / "run"
    assert os.name == "nt" or script.stat().st_mode & 0o111
    assert f"\n{COMMANDS[1]} " in script.read_text(encoding="utf-8")


def test_versions_agree() -> None:
    import nnlab

    assert f"version: {nnlab.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {nnlab.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
