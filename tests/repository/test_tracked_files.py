"""What stands in the repository's files, and what must not."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT_SUFFIXES = {"", ".py", ".md", ".toml", ".yml", ".yaml", ".txt", ".cfg", ".cff", ".ipynb", ".cu", ".csv", ".json"}
TOP_LEVEL = {
    "notebooks", "nnlab", "data", "tests", "benchmarks", "environment.yml", "pyproject.toml", "pins.txt",
    "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff",
    ".ci", ".github", ".gitignore", ".gitattributes",
}  # fmt: skip
# written in two parts, so that this file does not hold what it looks for
MACHINE_PATHS = [
    "/" + "work/",
    "/" + "root/",
    "/" + "home/",
    "/" + "Users/",
    "/" + "tmp/",
    ".." + "/shared",
]
REGISTRY_HOSTS = ["files.python" + "hosted.org", "pypi.org/" + "simple", "index" + "-url", "find" + "-links"]


def tracked() -> list[Path]:
    """The files git tracks; without git (a copied tree), what stands in the planned places."""
    if (ROOT / ".git").exists():
        answer = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
        return [path for path in (ROOT / name for name in answer.stdout.split("\0") if name) if path.is_file()]
    planned = {name for name in TOP_LEVEL if (ROOT / name).is_dir()}
    found = [path for path in ROOT.iterdir() if path.is_file()] + [
        p for top in planned for p in (ROOT / top).rglob("*")
    ]
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


FILES = tracked()
TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in FILES
    if path.suffix in TEXT_SUFFIXES
}


def test_no_machine_and_no_registry_is_named() -> None:
    looking_for_them = {"tests/notebooks_checks/rules.py", "tests/notebooks_checks/test_rules.py"}
    assert not [
        f"{word} in {name}"
        for name, text in TEXTS.items()
        for word in [*MACHINE_PATHS, *REGISTRY_HOSTS]
        if word in text and name not in looking_for_them
    ]


def test_nothing_sends_people_to_the_other_nnlab() -> None:
    """The name on PyPI belongs to another project."""
    command = re.compile(r"(pip|uv|pipx|conda)3? (install|add)( -\S+)* [\"']?nn" + r"lab\b")
    assert not [f"{found.group()} in {name}" for name, text in TEXTS.items() if (found := command.search(text))]


def test_the_repository_stays_small() -> None:
    assert sum(path.stat().st_size for path in FILES) < 15 * 2**20


def test_notebooks_stay_small() -> None:
    assert not [path.name for path in FILES if path.suffix == ".ipynb" and path.stat().st_size > 400_000]


def test_the_top_level_is_the_planned_one() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in FILES} <= TOP_LEVEL
