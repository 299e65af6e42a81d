"""Every folded solution passes its exercise's check, in the lesson's own setting."""

from __future__ import annotations

import re

import matplotlib as mpl
import nbformat
import pytest

pytest.importorskip("nbformat")
pytest.importorskip("IPython")
from matplotlib import pyplot as plt

from tests.notebooks_checks.lesson_rules import solutions
from tests.notebooks_checks.rules import code, tags
from tests.notebooks_checks.test_notebooks import NOTEBOOKS

WITH_SOLUTIONS = [path for path in NOTEBOOKS if solutions(nbformat.read(path, as_version=4))]


@pytest.fixture(scope="module", params=WITH_SOLUTIONS, ids=lambda path: path.stem)
def setting(request):
    """The lesson, and the names that its cells tagged `setup` make."""
    nb = nbformat.read(request.param, as_version=4)
    names: dict[str, object] = {"__name__": "__main__"}
    with mpl.rc_context():
        for number, cell in enumerate(code(nb), 1):
            if "setup" in tags(cell):
                exec(compile(cell.source, f"{request.param.name}, code cell {number}", "exec"), names)
        yield nb, names
    plt.close("all")


def test_solutions_pass_their_checks(setting, capsys):
    nb, names = setting
    for solution in solutions(nb):
        asked = re.findall(r"\b(?:check|par)\(", solution)
        assert asked, f"a solution that checks nothing:\n{solution}"
        capsys.readouterr()
        exec(compile(solution, "solution", "exec"), dict(names))
        said = capsys.readouterr().out
        verdicts = [line for line in said.splitlines() if line[:1] in "✓✗…"]
        assert len(verdicts) == len(asked), said
        assert all(line.startswith("✓") for line in verdicts), said
