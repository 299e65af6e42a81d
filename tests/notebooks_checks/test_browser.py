"""Lesson 01 as a learner meets it: in JupyterLab, in a browser, the slider moved by keyboard."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("nbformat")

from tests.notebooks_checks.lab import CHROMIUM, FLAGS, RUN_ALL, open_notebook, server
from tests.notebooks_checks.test_notebooks import NOTEBOOKS

ERRORS = (
    '.jp-RenderedText[data-mime-type="application/vnd.jupyter.error"], '
    '.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.stderr"]'
)
CHANGED = "([element, old]) => element.innerText !== old"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    sync_api = pytest.importorskip("playwright.sync_api")
    root = tmp_path_factory.mktemp("lessons")
    (lesson,) = [path for path in NOTEBOOKS if path.name.startswith("01_")]
    shutil.copy(lesson, root)
    with server(root, tmp_path_factory.mktemp("home")) as port, sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield open_notebook(browser, port, lesson.name)
        browser.close()


@pytest.mark.browser
def test_the_slider_of_lesson_01_changes_numbers_and_picture(page):
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.evaluate(RUN_ALL)
    assert page.locator(ERRORS).count() == 0
    handle = page.locator(".jp-OutputArea .widget-slider .noUi-handle").first
    handle.scroll_into_view_if_needed()
    numbers = page.locator(".jp-OutputArea .widget-html-content", has_text="rate").last
    picture = page.locator(".jp-OutputArea img.widget-image").first
    text, source = numbers.inner_text(), picture.get_attribute("src")
    handle.focus()
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(CHANGED, arg=[numbers.element_handle(), text], timeout=15_000)
    page.wait_for_function(
        "([image, old]) => image.src !== old", arg=[picture.element_handle(), source], timeout=15_000
    )
    assert "least squares" in numbers.inner_text()
    assert not faults
