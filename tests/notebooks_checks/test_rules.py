"""Every rule is seen to fail on a lesson that breaks it, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("nbformat")
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from tests.notebooks_checks import lesson_rules, rules
from tests.notebooks_checks.lesson_rules import LESSON_RULES
from tests.notebooks_checks.rules import RULES
from tests.notebooks_checks.samples import FIRST, good, picture_output, png
from tests.notebooks_checks.test_notebooks import missing_from_the_run, not_in_the_table

PATH = Path(__file__).with_name("01_sample.ipynb")


def with_code(source, *outputs, tags=()):
    """A change: the first code cell becomes this one."""

    def change(nb):
        nb.cells[1] = new_code_cell(source, execution_count=1, outputs=list(outputs), metadata={"tags": list(tags)})

    return change


def with_first(old, new):
    """A change of the opening text."""

    def change(nb):
        assert old in nb.cells[0].source
        nb.cells[0].source = nb.cells[0].source.replace(old, new)

    return change


def with_last(old, new):
    """A change of the closing text."""

    def change(nb):
        assert old in nb.cells[-1].source
        nb.cells[-1].source = nb.cells[-1].source.replace(old, new)

    return change


def metadata(**items):
    return lambda nb: nb.metadata.update(items)


def stripped(nb):
    for cell in rules.code(nb):
        cell.execution_count, cell.outputs = None, []


def emptied(nb):
    for cell in rules.code(nb):
        cell.outputs = []


def partly_run(nb):
    rules.code(nb)[-1].execution_count = None


def out_of_order(nb):
    first, second, *_ = rules.code(nb)
    first.execution_count, second.execution_count = 2, 1


def timed(nb):
    nb.cells[1].metadata["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00Z"}


def picture(data, **changes):
    return with_code("show()", picture_output(data, **changes))


stream = lambda text, name="stdout": new_output("stream", name=name, text=text)  # noqa: E731
result = lambda text: new_output("execute_result", data={"text/plain": text}, execution_count=1)  # noqa: E731
error = new_output("error", ename="ValueError", evalue="no", traceback=[])
svg = new_output("display_data", data={"image/svg+xml": "<svg/>"})

BROKEN = [
    (rules.is_a_valid_notebook, lambda nb: nb.cells[1].pop("outputs"), "not a valid notebook"),
    (rules.has_the_public_kernel_and_no_other_metadata, metadata(kernelspec={"name": "my-env"}), "my-env"),
    (rules.has_the_public_kernel_and_no_other_metadata, metadata(widgets={"state": {}}), "widgets"),
    (rules.has_the_public_kernel_and_no_other_metadata, metadata(language_info={"version": "3.11"}), "language_info"),
    (rules.has_the_public_kernel_and_no_other_metadata, timed, "times are saved"),
    (rules.names_no_machine, with_code("1", stream("/home/ada/x.csv")), "/home/"),
    (rules.names_no_machine, with_code("1", stream("C:\\Users\\ada")), "path of one machine"),
    (rules.is_small, with_code("1", stream("x" * 400_000)), "bytes, the limit"),
    (rules.is_small, with_code("\n".join(["pass"] * 26)), "26 lines"),
    (rules.is_small, lambda nb: nb.cells.extend(new_markdown_cell("x") for _ in range(26)), "31 cells"),
    (rules.has_no_line_that_a_page_cuts_off, with_code(f"x = 1\n# {'x' * 99}"), "101 characters"),
    (rules.was_run_from_top_to_bottom, stripped, "not run"),
    (rules.was_run_from_top_to_bottom, emptied, "outputs were removed"),
    (rules.was_run_from_top_to_bottom, partly_run, "not run"),
    (rules.was_run_from_top_to_bottom, out_of_order, "in the order [2, 1"),
    (rules.has_no_error_without_its_tag, with_code("f()", error), "without the tag"),
    (rules.has_no_error_without_its_tag, with_code("f()", tags=["raises-exception"]), "nothing is raised"),
    (rules.has_no_stderr, with_code("f()", stream("12 %", "stderr")), "stderr"),
    (rules.prints_no_address_and_no_duration, with_code("f", result("<function f at 0x7f12ab34cd>")), "address"),
    (rules.prints_no_address_and_no_duration, with_code("f", result("<Figure size 640x480 with 1 Axes>")), "repr"),
    (rules.prints_no_address_and_no_duration, with_code("f()", stream("CPU times: user 3 ms")), "time"),
    (rules.prints_no_address_and_no_duration, with_code("f()", tags=["nbval-ignore-output"]), "asserts nothing"),
    (rules.has_whole_pictures_told_in_words, picture(png(7, 7)), "blank"),
    (rules.has_whole_pictures_told_in_words, picture(png(0, 255)[:40]), "broken"),
    (rules.has_whole_pictures_told_in_words, picture("rubbish"), "broken"),
    (rules.has_whole_pictures_told_in_words, picture(png(0, 255), metadata={}), "without words"),
    (rules.has_whole_pictures_told_in_words, with_code("1", svg), "use PNG"),
    (rules.uses_what_every_tool_can_run, with_code("widgets.interact(f, x=1)"), "interact"),
    (rules.uses_what_every_tool_can_run, with_code("out = widgets.Output()"), "Output"),
    (rules.uses_what_every_tool_can_run, with_code("clear_output(wait=True)"), "clear_output"),
    (rules.uses_what_every_tool_can_run, with_code("x = 1\n!pip install numpy"), "!"),
    (rules.uses_what_every_tool_can_run, with_code("%matplotlib inline"), "%"),
    (rules.uses_what_every_tool_can_run, with_code("plt.plot(x);"), ";"),
    (rules.uses_what_every_tool_can_run, with_code("urlretrieve(a)"), "download"),
    (rules.uses_what_every_tool_can_run, with_code("Out[3]"), "Out"),
    (rules.fits_scalers_on_training_rows_only, with_code("scaler.fit(x_all)"), "x_all"),
    (rules.fits_scalers_on_training_rows_only, with_code("z = StandardScaler().fit(x)"), "'x'"),
    (rules.fits_scalers_on_training_rows_only, with_code("scaler.fit_transform(x_train)"), "fit_transform"),
    (lesson_rules.opens_like_a_lesson, with_first("# Fit", "Fit"), "one title"),
    (lesson_rules.opens_like_a_lesson, with_last("## You", "# You"), "there are 2"),
    (lesson_rules.opens_like_a_lesson, with_first("20 minutes", "a while"), "minutes"),
    (lesson_rules.opens_like_a_lesson, lambda nb: nb.cells.pop(0), "not text"),
    (lesson_rules.keeps_its_promises, with_last("- checked the gradient numerically\n", ""), "3 promises"),
    (lesson_rules.keeps_its_promises, with_last("gradient numerically", "split on purpose"), "split on purpose"),
    (lesson_rules.keeps_its_promises, with_first("You will be able to", "Goals"), "0 bullets"),
    (lesson_rules.has_no_dead_link, with_last("## You", "[on](02_none.ipynb#top)\n\n## You"), "02_none.ipynb"),
    (lesson_rules.has_no_dead_link, with_last("## You", '<img src="none.png">\n\n## You'), "none.png"),
    (lesson_rules.asks_what_the_package_can_answer, with_code('guess("01.nothing", ...)'), "01.nothing"),
    (lesson_rules.asks_what_the_package_can_answer, with_code('check("01.nothing", 3)'), "01.nothing"),
    (lesson_rules.asks_what_the_package_can_answer, with_code('guess("01.limit", "b")'), "already answered"),
    (lesson_rules.folds_a_solution_for_every_exercise, with_code('check("01.x", x)'), "no solution for 01.x"),
    (lesson_rules.folds_a_solution_for_every_exercise, with_last("pass", 'check("01.y", 1)'), "01.y"),
]


@pytest.mark.parametrize(("rule", "change", "word"), BROKEN, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_lesson_is_found_out(rule, change, word):
    nb = good()
    change(nb)
    wrong = rule(nb, PATH)
    assert wrong
    assert word in "\n".join(wrong)


@pytest.mark.parametrize("rule", [*RULES, *LESSON_RULES], ids=lambda rule: rule.__name__)
def test_a_good_lesson_passes(rule):
    assert rule(good(), PATH) == []


@pytest.mark.parametrize("rule", [*RULES, *LESSON_RULES], ids=lambda rule: rule.__name__)
def test_no_rule_is_without_a_broken_lesson(rule):
    assert rule in [broken for broken, _, _ in BROKEN]


def test_a_guess_of_another_lesson_is_found_out():
    nb = good()
    wrong = lesson_rules.asks_what_the_package_can_answer(nb, PATH.with_name("02_other.ipynb"))
    assert "another lesson" in wrong[0]


def test_mistakes_shown_on_purpose_are_allowed():
    nb = good()
    with_code("scaler.fit(x_all)", tags=["on-purpose"])(nb)
    assert rules.fits_scalers_on_training_rows_only(nb, PATH) == []


def test_a_notebook_left_out_of_the_run_is_found_out():
    assert missing_from_the_run({Path("a.ipynb")}, {Path("a.ipynb"), Path("b.ipynb")}) == [
        "b.ipynb is not in this test run"
    ]


def test_the_table_of_lessons_is_compared_both_ways():
    readme = "| [01](notebooks/01_a.ipynb) | [03](notebooks/03_c.ipynb) |"
    wrong = "\n".join(not_in_the_table(readme, ["01_a.ipynb", "02_b.ipynb"]))
    assert "02_b.ipynb is not in" in wrong
    assert "03_c.ipynb, which is not there" in wrong


def test_blank_lines_are_not_counted():
    nb = good()
    with_code("\n\n".join(["pass"] * 25))(nb)
    assert rules.is_small(nb, PATH) == []


def test_lessons_that_lead_nowhere_are_found_out():
    texts = {"01_a.ipynb": "[02](02_b.ipynb)", "02_b.ipynb": "the end", "03_c.ipynb": "", "05_e.ipynb": ""}
    assert lesson_rules.does_not_lead_on(texts) == ["02_b.ipynb ends without a link to 03_c.ipynb"]
    assert lesson_rules.missing_from_the_map("[01](01_a.ipynb) [02](02_b.ipynb)", ["01_a.ipynb", "03_c.ipynb"]) == [
        "03_c.ipynb is not in the map of lesson 00"
    ]


def test_links_to_what_is_there_are_alive():
    nb = good()
    nb.cells[0].source = FIRST + f"\n[here]({PATH.with_name('test_rules.py').name}) [web](https://example.org/x)"
    assert lesson_rules.has_no_dead_link(nb, PATH) == []
