"""What a committed lesson must be like, as rules: each takes a notebook and its path and returns what is wrong.

nbval runs the cells and compares their texts. It sees neither pictures nor stripped notebooks, and knows nothing of
how a lesson is made; these rules do. Tags on code cells: `raises-exception` (an error is wanted),
`on-purpose` (a mistake that the lesson makes in order to show it), `setup` (what the solutions need).
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from PIL import Image

Rule = Callable[[NotebookNode, Path], list[str]]
RULES: list[Rule] = []

CELLS, LINES, COLUMNS, BYTES = 30, 25, 100, 400_000


def rule(function: Rule) -> Rule:
    RULES.append(function)
    return function


def code(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def tags(cell: NotebookNode) -> list[str]:
    return list(cell.metadata.get("tags", []))


def outputs(nb: NotebookNode) -> Iterator[tuple[NotebookNode, NotebookNode]]:
    return ((cell, output) for cell in code(nb) for output in cell.outputs)


def head(cell: NotebookNode) -> str:
    return f"cell starting {cell.source.strip().splitlines()[0][:60]!r}" if cell.source.strip() else "an empty cell"


def texts(output: NotebookNode) -> Iterator[str]:
    """All texts of an output; pictures are left out."""
    yield output.get("text", "")
    for kind, value in output.get("data", {}).items():
        if kind.startswith("text/"):
            yield value
    yield "\n".join([output.get("ename", ""), output.get("evalue", ""), *output.get("traceback", [])])


# --- the file -------------------------------------------------------------------------------------------------


@rule
def is_a_valid_notebook(nb: NotebookNode, path: Path) -> list[str]:
    """D-28."""
    try:
        nbformat.validate(nb)
    except nbformat.ValidationError as error:
        return [f"not a valid notebook: {error.message}"]
    return []


@rule
def has_the_public_kernel_and_no_other_metadata(nb: NotebookNode, path: Path) -> list[str]:
    """D-28, D-32: a private kernel name or half of a widget state breaks other people's tools."""
    wrong = []
    if (name := nb.metadata.get("kernelspec", {}).get("name")) != "python3":
        wrong.append(f"the kernel is {name!r}, not 'python3'")
    extra = sorted(set(nb.metadata) - {"kernelspec", "language_info"})
    wrong += [f"metadata {key!r} does not belong in the file" for key in extra]
    if set(nb.metadata.get("language_info", {})) - {"name"}:
        wrong.append("language_info holds more than the language's name (a Python version?)")
    wrong += [f"{head(cell)}: times are saved" for cell in nb.cells if "execution" in cell.metadata]
    return wrong


@rule
def names_no_machine(nb: NotebookNode, path: Path) -> list[str]:
    text = nbformat.writes(nb)
    places = r"/home/|/root/|/tmp/|/Users/|/private/var|[A-Z]:\\\\|ipykernel_\d+"
    return [f"holds a path of one machine: {found}" for found in sorted(set(re.findall(places, text)))]


@rule
def is_small(nb: NotebookNode, path: Path) -> list[str]:
    wrong = []
    if (size := len(nbformat.writes(nb).encode())) >= BYTES:
        wrong.append(f"{size:,} bytes, the limit is {BYTES:,}")
    if len(nb.cells) > CELLS:
        wrong.append(f"{len(nb.cells)} cells, the limit is {CELLS}")
    for cell in code(nb):
        if (lines := sum(bool(line.strip()) for line in cell.source.splitlines())) > LINES:
            wrong.append(f"{head(cell)}: {lines} lines that are not blank, the limit is {LINES}")
    return wrong


@rule
def has_no_line_that_a_page_cuts_off(nb: NotebookNode, path: Path) -> list[str]:
    """A page of normal width shows about COLUMNS characters of code and hides the rest."""
    return [
        f"{head(cell)}: a line of {len(line)} characters, the limit is {COLUMNS}"
        for cell in code(nb)
        for line in cell.source.splitlines()
        if len(line) > COLUMNS
    ]


# --- the run --------------------------------------------------------------------------------------------------


@rule
def was_run_from_top_to_bottom(nb: NotebookNode, path: Path) -> list[str]:
    """A notebook stripped of its outputs passes nbval, because cells without a count are not compared."""
    counts = [cell.execution_count for cell in code(nb)]
    if not counts:
        return ["has no code"]
    if None in counts:
        return [f"{head(cell)}: not run" for cell in code(nb) if cell.execution_count is None]
    if counts != list(range(1, len(counts) + 1)):
        return [f"cells were run in the order {counts}"]
    if not any(cell.outputs for cell in code(nb)):
        return ["all outputs were removed"]
    return []


@rule
def has_no_error_without_its_tag(nb: NotebookNode, path: Path) -> list[str]:
    wrong = [
        f"{head(cell)}: {output.ename} without the tag raises-exception"
        for cell, output in outputs(nb)
        if output.output_type == "error" and "raises-exception" not in tags(cell)
    ]
    failed = {id(cell) for cell, output in outputs(nb) if output.output_type == "error"}
    wrong += [
        f"{head(cell)}: tagged raises-exception, but nothing is raised"
        for cell in code(nb)
        if "raises-exception" in tags(cell) and id(cell) not in failed
    ]
    return wrong


@rule
def has_no_stderr(nb: NotebookNode, path: Path) -> list[str]:
    """D-30: warnings and text progress bars."""
    return [f"{head(cell)}: stderr was saved" for cell, output in outputs(nb) if output.get("name") == "stderr"]


@rule
def prints_no_address_and_no_duration(nb: NotebookNode, path: Path) -> list[str]:
    """D-30, D-31: what differs from run to run, unless the cell is tagged nbval-ignore-output and asserts."""
    wrong = []
    for cell, output in outputs(nb):
        for text in texts(output):
            if re.search(r"\bat 0x[0-9a-f]{6,}|<(Figure size|Axes|matplotlib\.)", text):
                wrong.append(f"{head(cell)}: shows an object's address or a figure's repr")
            elif re.search(r"Wall time|CPU times|it/s\]|\[\d\d:\d\d<", text):
                wrong.append(f"{head(cell)}: shows a time that differs from run to run")
    for cell in code(nb):
        if "nbval-ignore-output" in tags(cell) and not re.search(r"^\s*assert |check_", cell.source, re.M):
            wrong.append(f"{head(cell)}: its output is not compared and it asserts nothing")
    return wrong


# --- the pictures ---------------------------------------------------------------------------------------------


@rule
def has_whole_pictures_told_in_words(nb: NotebookNode, path: Path) -> list[str]:
    """nbval compares no picture: here a blank or broken one fails, and one without words for who cannot see it."""
    wrong = []
    for cell, output in outputs(nb):
        data = output.get("data", {})
        if "image/png" in data:
            wrong += [f"{head(cell)}: {fault}" for fault in _faults(data["image/png"])]
            alt = output.metadata.get("image/png", {}).get("alt", "")
            if len(alt) < 20:
                wrong.append(f"{head(cell)}: a picture without words; show it with figures.show(fig, alt=...)")
        wrong += [
            f"{head(cell)}: a picture as {kind}; use PNG" for kind in ("image/svg+xml", "image/jpeg") if kind in data
        ]
    return wrong


def _faults(png: str) -> list[str]:
    try:
        with Image.open(io.BytesIO(base64.b64decode(png, validate=False))) as picture:
            picture.load()
            low, high = picture.convert("L").getextrema()
    except Exception as error:  # whatever Pillow says of broken bytes
        return [f"a broken picture ({type(error).__name__})"]
    return ["a blank picture"] if low == high else []


# --- the code -------------------------------------------------------------------------------------------------


@rule
def uses_what_every_tool_can_run(nb: NotebookNode, path: Path) -> list[str]:
    banned = {
        r"\binteract(ive)?\(|widgets\.Output\(|\bOutput\(": "Output and interact widgets hang nbclient and fail nbval",
        r"clear_output|display_id|update_display": "nbval cannot handle changing outputs",
        r"^\s*[!%]": "shell escapes and magics do not run everywhere",
        r"urlopen|urlretrieve|requests\.|https?://": "lessons download nothing",
        r";\s*\Z": "a ; at the end hides a value from people, not from nbval",
        r"\bOut\[": "Out is not there in a test run",
    }
    wrong = []
    for cell in code(nb):
        source = re.sub(r"#.*", "", cell.source)
        for pattern, reason in banned.items():
            if found := re.search(pattern, source, re.M if pattern.startswith("^") else 0):
                wrong.append(f"{head(cell)}: {found.group().strip()!r}: {reason}")
    return wrong


@rule
def fits_scalers_on_training_rows_only(nb: NotebookNode, path: Path) -> list[str]:
    """D-14: statistics of all rows let the test set leak into training; shown only in a cell tagged on-purpose."""
    wrong = []
    for cell in code(nb):
        if "on-purpose" in tags(cell):
            continue
        if "fit_transform" in cell.source:
            wrong.append(f"{head(cell)}: fit_transform hides which rows the statistics come from")
        for rows in re.findall(r"[Ss]cal\w*(?:\(\))?\.fit\(([^)]*)\)", cell.source):
            if "train" not in rows:
                wrong.append(f"{head(cell)}: a scaler is fitted on {rows!r}, which does not say train")
    return wrong
