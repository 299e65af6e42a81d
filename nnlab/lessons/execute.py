# mypy: disallow-untyped-calls=False
"""Execute the lessons and save them so that a second run changes no byte (`nnlab execute`)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
SECONDS = 120  # for one cell; without a limit nbclient can wait for ever


def execute_all(paths: Iterable[Path], *, save: bool = True) -> list[str]:
    """Execute notebooks, save them where asked, print a line for each; the names of those that changed."""
    changed = []
    for path in paths:
        before, after = path.read_text(encoding="utf-8"), execute(path)
        if before != after:
            changed.append(path.name)
            if save:
                path.write_text(after, encoding="utf-8", newline="\n")
        print(f"{path.name}: {'same' if before == after else 'changed'}", flush=True)
    return changed


def find(names: Sequence[str]) -> list[Path]:
    """The notebooks with these numbers or paths, all of them for none. Raises FileNotFoundError by name."""
    if not names:
        return sorted(NOTEBOOKS.glob("*.ipynb"))
    paths = []
    for name in names:
        found = [Path(name)] if name.endswith(".ipynb") else sorted(NOTEBOOKS.glob(f"{name}_*.ipynb"))
        if not found or not found[0].is_file():
            raise FileNotFoundError(f"no lesson {name!r} in {NOTEBOOKS.name}/; give its number (01) or its file")
        paths += found
    return paths


def execute(path: Path) -> str:
    """Run all cells of a notebook in a fresh kernel and return the file's new text, in normal form.

    Raises nbclient's CellExecutionError where a cell fails that is not tagged `raises-exception`.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=SECONDS, startup_timeout=60, kernel_name="python3", record_timing=False,
        coalesce_streams=True, store_widget_state=False, resources={"metadata": {"path": str(path.parent)}},
    )  # fmt: skip
    client.execute(env=kernel_environment())
    return normal_form(notebook)


def kernel_environment() -> dict[str, str]:
    """The variables for a kernel that is to import this nnlab, installed or not, and to save no progress bar."""
    path = filter(None, (str(NOTEBOOKS.parent), os.environ.get("PYTHONPATH")))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "NNLAB_PROGRESS": "off"}


def normal_form(notebook: NotebookNode) -> str:
    """The text of a notebook without what differs from run to run or from machine to machine.

    No widget state, no times, no Python version; widget views are numbered in their order.
    """
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    text: str = nbformat.writes(notebook)
    for number, view in enumerate(dict.fromkeys(re.findall(r'"model_id": "([0-9a-f]{32})"', text))):
        text = text.replace(view, f"{number + 1:032x}")
    nbformat.validate(nbformat.from_dict(json.loads(text)))
    return text.rstrip("\n") + "\n"
