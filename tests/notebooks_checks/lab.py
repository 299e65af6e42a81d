"""A JupyterLab server of the test's own, and a page of it in headless Chromium."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nnlab.lessons.execute import kernel_environment

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
TOKEN = "lesson"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
RUN_ALL = """() => Promise.race([  // an evaluate has no time limit of its own
    jupyterapp.commands.execute('notebook:run-all-cells'),
    new Promise((_, fail) => setTimeout(() => fail(new Error('cells still running after 120 s')), 120000))])"""


@contextlib.contextmanager
def server(root: Path, home: Path) -> Iterator[int]:
    """Start JupyterLab over `root`, with settings in `home`; the port."""
    notifications = home / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    notifications.parent.mkdir(parents=True)
    notifications.write_text('{"fetchNews": "false", "checkForUpdates": false}')  # else a question covers the page
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folders = {"SETTINGS": "settings", "WORKSPACES": "workspaces"}
    own = {f"JUPYTERLAB_{key}_DIR": str(home / name) for key, name in folders.items()}
    own |= {"JUPYTER_CONFIG_DIR": str(home / "config"), "JUPYTER_RUNTIME_DIR": str(home / "runtime")}
    arguments = [
        "--no-browser", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", "--allow-root",
        f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={root}", "--expose-app-in-browser",
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *arguments],
        env={**kernel_environment(), **own},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    try:
        _wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(port: int, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/status?token={TOKEN}", timeout=2).close()
            return
        time.sleep(0.2)
    raise TimeoutError("JupyterLab did not start")


def open_notebook(browser: Any, port: int, name: str) -> Any:
    """The page with the notebook open and its kernel ready."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"http://127.0.0.1:{port}/lab/workspaces/test/tree/{name}?token={TOKEN}&reset")
    page.locator(".jp-NotebookPanel .jp-Cell").first.wait_for(timeout=60_000)
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=60_000)
    return page
