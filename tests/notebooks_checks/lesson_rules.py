"""What makes a notebook a lesson of this course: promises kept, links alive, guesses and exercises known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from nbformat import NotebookNode

from nnlab.errors import UnknownName
from nnlab.lessons import checks, guesses

PROMISE, KEPT = "You will be able to", "You have"


def markdown(nb: NotebookNode) -> list[str]:
    return [cell.source for cell in nb.cells if cell.cell_type == "markdown"]


def opens_like_a_lesson(nb: NotebookNode, path: Path) -> list[str]:
    """The first cell: one title, the promises, the minutes."""
    if not nb.cells or nb.cells[0].cell_type != "markdown":
        return ["the first cell is not text"]
    first, wrong = nb.cells[0].source, []
    titles = [line for text in markdown(nb) for line in _outside_code(text) if re.match(r"# ", line)]
    if len(titles) != 1 or not first.startswith("# "):
        wrong.append(f"one title (# ...) at the top is wanted, there are {len(titles)}")
    if not re.search(r"\d+ minutes", first):
        wrong.append("the first cell does not say how many minutes the lesson takes")
    return wrong


def keeps_its_promises(nb: NotebookNode, path: Path) -> list[str]:
    """One bullet under "You have" for each under "You will be able to", in its order and about the same thing."""
    promised, kept = _bullets(nb, PROMISE), _bullets(nb, KEPT)
    if not 3 <= len(promised) <= 5:
        return [f"{len(promised)} bullets under {PROMISE!r}, 3 to 5 are wanted"]
    if len(kept) != len(promised):
        return [f"{len(promised)} promises under {PROMISE!r}, {len(kept)} bullets under {KEPT!r}"]
    return [
        f"{KEPT!r} says {done!r} where {PROMISE!r} says {promise!r}"
        for promise, done in zip(promised, kept, strict=True)
        if len(_stems(promise) & _stems(done)) < 2
    ]


def has_no_dead_link(nb: NotebookNode, path: Path) -> list[str]:
    """Links to files must lead to files that are there; links into the web are left alone."""
    wrong = []
    for text in markdown(nb):
        for target in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text):
            link = unquote(target[0] or target[1]).split("#")[0]
            if link and not re.match(r"https?:|mailto:|attachment:", link) and not (path.parent / link).exists():
                wrong.append(f"dead link: {link}")
    return wrong


def asks_what_the_package_can_answer(nb: NotebookNode, path: Path) -> list[str]:
    """Each guess and check has its answer in the package, is still open in the file, and belongs to this lesson."""
    wrong = []
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        for kind, key, rest in re.findall(r"\b(guess|check)\(\s*\"([^\"]*)\"\s*,?\s*([^)]*)\)", cell.source):
            try:
                (guesses if kind == "guess" else checks).lookup(key)
            except UnknownName as error:
                wrong.append(str(error))
            if not path.name.startswith(key.split(".")[0]):
                wrong.append(f"{kind}({key!r}) belongs to another lesson")
            if kind == "guess" and rest.strip() not in ("...", "None"):
                wrong.append(f"guess({key!r}) is already answered in the file")
    return wrong


def folds_a_solution_for_every_exercise(nb: NotebookNode, path: Path) -> list[str]:
    """Each check(...) of the lesson appears once more in a folded solution."""
    asked = set(re.findall(r"\bcheck\(\s*\"([^\"]*)\"", "\n".join(c.source for c in nb.cells if c.cell_type == "code")))
    solved = set(re.findall(r"\bcheck\(\s*\"([^\"]*)\"", "\n".join(solutions(nb))))
    return [f"no solution for {key}" for key in sorted(asked - solved)] + [
        f"a solution for {key}, which is not an exercise here" for key in sorted(solved - asked)
    ]


def solutions(nb: NotebookNode) -> list[str]:
    """The code of the folded solutions: ```python blocks inside <details>."""
    folded = [part for text in markdown(nb) for part in re.findall(r"<details>(.*?)</details>", text, re.S)]
    return [block for part in folded for block in re.findall(r"```python\n(.*?)```", part, re.S)]


def does_not_lead_on(endings: Mapping[str, str]) -> list[str]:
    """Lessons, file name → last text, whose end does not link the lesson of the next number, where there is one."""
    names = sorted(endings)
    return [
        f"{name} ends without a link to {following}"
        for name, following in pairwise(names)
        if int(following[:2]) == int(name[:2]) + 1 and f"({following})" not in endings[name]
    ]


def missing_from_the_map(text: str, names: list[str]) -> list[str]:
    """Lessons that the map of lesson 00 does not link."""
    return [f"{name} is not in the map of lesson 00" for name in names if f"[{name[:2]}]({name})" not in text]


LESSON_RULES = [
    opens_like_a_lesson,
    keeps_its_promises,
    has_no_dead_link,
    asks_what_the_package_can_answer,
    folds_a_solution_for_every_exercise,
]


def _outside_code(text: str) -> list[str]:
    return re.sub(r"```.*?```", "", text, flags=re.S).splitlines()


def _bullets(nb: NotebookNode, heading: str) -> list[str]:
    """The bullets that follow the first line with the heading, up to the first line of another kind."""
    for text in markdown(nb):
        lines = text.splitlines()
        for number, line in enumerate(lines):
            if line.strip("#*: ").startswith(heading):
                return _first_list(lines[number + 1 :])
    return []


def _first_list(lines: list[str]) -> list[str]:
    bullets: list[str] = []
    for line in lines:
        if re.match(r"[-*] ", line):
            bullets.append(line[2:])
        elif bullets and line.startswith("  "):
            bullets[-1] += " " + line.strip()
        elif bullets:
            break
    return bullets


def _stems(sentence: str) -> set[str]:
    """Words of four letters and more, cut to five, so that fit, fitted and fitting may meet."""
    return {word[:5].lower() for word in re.findall(r"[^\W\d_]{4,}", sentence)}
