"""The rules, on every lesson; and that every lesson is run."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("nbformat")

from tests.notebooks_checks.lesson_rules import LESSON_RULES, does_not_lead_on, markdown, missing_from_the_map
from tests.notebooks_checks.rules import RULES, outputs

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def missing_from_the_run(run: set[Path], all_of_them: set[Path]) -> list[str]:
    return [f"{path.name} is not in this test run" for path in sorted(all_of_them - run)]


def not_in_the_table(readme: str, names: list[str]) -> list[str]:
    """Lessons that the README's table does not link, and links of it that lead nowhere."""
    linked = set(re.findall(r"\(notebooks/([^)]+\.ipynb)\)", readme))
    return [f"{name} is not in the README's table of lessons" for name in names if name not in linked] + [
        f"the README links {name}, which is not there" for name in sorted(linked - set(names))
    ]


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def lesson(request):
    return nbformat.read(request.param, as_version=4), request.param


@pytest.mark.parametrize("rule", [*RULES, *LESSON_RULES], ids=lambda rule: rule.__name__)
def test_a_lesson_keeps_the_rule(lesson, rule):
    nb, path = lesson
    wrong = rule(nb, path)
    assert not wrong, "\n".join([path.name, *wrong])


def test_there_are_lessons():
    assert NOTEBOOKS


def test_every_lesson_is_in_the_run(request):
    """A notebook that is left out of the run cannot fail; judged where the run is to have the whole folder."""
    asked_for = {Path(request.config.invocation_params.dir, argument).resolve() for argument in request.config.args}
    if not request.config.getoption("nbval", default=False) or ROOT / "notebooks" not in asked_for:
        pytest.skip("this run is without --nbval notebooks")
    run = {Path(item.path) for item in request.session.items if item.path.suffix == ".ipynb"}
    assert not missing_from_the_run(run, set(NOTEBOOKS))


def test_every_lesson_is_in_the_readme():
    wrong = not_in_the_table((ROOT / "README.md").read_text(encoding="utf-8"), [path.name for path in NOTEBOOKS])
    assert not wrong, "\n".join(wrong)


def test_every_lesson_is_in_the_map_and_leads_on():
    endings = {path.name: markdown(nbformat.read(path, as_version=4))[-1] for path in NOTEBOOKS}
    start, *others = sorted(endings)
    wrong = does_not_lead_on(endings) + missing_from_the_map(endings[start], others)
    assert not wrong, "\n".join(wrong)


def test_lessons_are_numbered_once():
    numbers = [path.name[:2] for path in NOTEBOOKS]
    assert all(re.fullmatch(r"\d\d_[a-z0-9_]+\.ipynb", path.name) for path in NOTEBOOKS)
    assert len(numbers) == len(set(numbers))


def test_a_lesson_converts_to_a_page(lesson):
    """D-28."""
    from nbconvert import HTMLExporter

    nb, _ = lesson
    page, _ = HTMLExporter().from_notebook_node(nb)
    pictures = [output for _, output in outputs(nb) if "image/png" in output.get("data", {})]
    assert page.count("<img ") == len(pictures)
