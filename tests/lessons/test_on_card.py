"""The record of lessons executed on a card says which ran to the end, and what the others said."""

from __future__ import annotations

import nbformat
import pytest

from nnlab.lessons.recorded.on_card import run_all

pytest.importorskip("nbclient")


def test_a_lesson_that_fails_is_told_with_its_error(tmp_path):
    for name, source in (("good", "print(1 + 1)"), ("bad", "x = 1\nassert x == 2, 'x is one'")):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    outcomes = run_all(sorted(tmp_path.glob("*.ipynb")))
    assert [outcomes[name]["passed"] for name in ("bad.ipynb", "good.ipynb")] == [False, True]
    assert "x is one" in outcomes["bad.ipynb"]["error"]
    assert outcomes["good.ipynb"]["seconds"] > 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
