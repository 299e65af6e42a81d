"""Executing lessons: the same bytes each time, and nothing of this machine in them."""

from __future__ import annotations

import json

import nbformat
import pytest

pytest.importorskip("nbclient")
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from nnlab.cli import main
from nnlab.lessons.execute import execute, execute_all, find

CELLS = [
    "print('a')\nprint('b')",
    "from matplotlib import pyplot as plt\nfrom nnlab import lessons\nlessons.start()",
    "fig, ax = plt.subplots(figsize=(3, 2))\nax.plot([1, 2])\nlessons.figures.show(fig, alt='a line that rises')",
    "import numpy as np\nlessons.widgets.LearningRate(np.arange(4.0)[:, None], np.array([[0.0, 1, 1, 3]]).T, steps=3)",
]


def saved(path, *sources):
    path.write_text(nbformat.writes(new_notebook(cells=[new_code_cell(source) for source in sources])))
    return path


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    path = saved(tmp_path_factory.mktemp("nb") / "01_sample.ipynb", *CELLS)
    texts = []
    for _ in range(2):
        execute_all([path])
        texts.append(path.read_text(encoding="utf-8"))
    return texts


def test_a_second_run_changes_no_byte(twice):
    assert twice[0] == twice[1]


def test_outputs_are_there_and_nothing_else(twice):
    nb = json.loads(twice[0])
    assert [cell["execution_count"] for cell in nb["cells"]] == [1, 2, 3, 4]
    assert set(nb["metadata"]) == {"kernelspec", "language_info"}
    assert nb["metadata"]["language_info"] == {"name": "python"}
    assert all("execution" not in cell["metadata"] for cell in nb["cells"])
    (text,) = nb["cells"][0]["outputs"]
    assert "".join(text["text"]) == "a\nb\n"
    picture, words = nb["cells"][2]["outputs"]
    assert picture["metadata"]["image/png"]["alt"] == "a line that rises"
    assert "In words" in "".join(words["data"]["text/plain"])


def test_a_widget_keeps_its_view_and_its_picture_but_no_state(twice):
    (output,) = json.loads(twice[0])["cells"][3]["outputs"]
    assert output["data"]["application/vnd.jupyter.widget-view+json"]["model_id"] == f"{1:032x}"
    assert output["data"]["image/png"]
    assert "widget-state" not in twice[0]


def test_check_saves_nothing_and_fails_on_a_change(tmp_path, capsys):
    path = saved(tmp_path / "a.ipynb", "print(1)")
    before = path.read_text()
    assert main(["execute", "--check", str(path)]) == 1
    assert path.read_text() == before
    assert main(["execute", str(path)]) == 0
    assert main(["execute", "--check", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "a.ipynb: same"


def test_a_cell_that_fails_stops_the_run_and_keeps_the_file(tmp_path):
    path = saved(tmp_path / "a.ipynb", "1 / 0")
    before = path.read_text()
    with pytest.raises(CellExecutionError, match="division by zero"):
        execute(path)
    assert path.read_text() == before


def test_an_unknown_lesson_is_named():
    with pytest.raises(FileNotFoundError, match="no lesson '99'"):
        find(["99"])


def test_no_progress_bar_is_saved(tmp_path):
    """A bar appears where training takes long, so the outputs would depend on the machine."""
    code = "import os\nprint(os.environ['NNLAB_PROGRESS'])"
    (cell,) = json.loads(execute(saved(tmp_path / "a.ipynb", code)))["cells"]
    assert "".join(cell["outputs"][0]["text"]) == "off\n"
