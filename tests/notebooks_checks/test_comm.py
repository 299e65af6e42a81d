"""A slider of lesson 01 moved through a real kernel, with the very message that a browser sends."""

from __future__ import annotations

import time
from typing import Any

import nbformat
import pytest

pytest.importorskip("ipykernel")
from jupyter_client.manager import start_new_kernel

from nnlab.lessons.execute import kernel_environment
from tests.notebooks_checks.rules import code
from tests.notebooks_checks.test_notebooks import NOTEBOOKS

SECONDS = 120


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(NOTEBOOKS[0].parent), env=kernel_environment())
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def drain(client: Any, models: dict[str, dict[str, Any]], request: str) -> set[str]:
    """Read what the kernel sends until it is done with the request; the ids of the models that changed."""
    changed, end = set(), time.monotonic() + SECONDS
    while time.monotonic() < end:
        message = client.get_iopub_msg(timeout=SECONDS)
        kind, content = message["msg_type"], message["content"]
        assert kind != "error", "\n".join(content["traceback"])
        if kind == "comm_open" and content["target_name"] == "jupyter.widget":
            models[content["comm_id"]] = dict(content["data"]["state"])
        elif kind == "comm_msg" and content["data"].get("method") == "update":
            state = dict(content["data"]["state"])
            for path, buffer in zip(content["data"].get("buffer_paths", []), message["buffers"], strict=True):
                state[path[0]] = bytes(buffer)
            models[content["comm_id"]].update(state)
            changed.add(content["comm_id"])
        elif (
            kind == "status" and content["execution_state"] == "idle" and message["parent_header"]["msg_id"] == request
        ):
            return changed
    raise TimeoutError("the kernel did not become idle")


def test_a_moved_slider_changes_numbers_and_picture(kernel):
    models: dict[str, dict[str, Any]] = {}
    (lesson,) = [path for path in NOTEBOOKS if path.name.startswith("01_")]
    for cell in code(nbformat.read(lesson, as_version=4)):
        drain(kernel, models, kernel.execute(cell.source, allow_stdin=False))
    slider = next(name for name, state in models.items() if state["_model_name"] == "FloatLogSliderModel")
    before = {name: dict(state) for name, state in models.items()}
    data = {"method": "update", "state": {"value": 0.2}, "buffer_paths": []}
    message = kernel.session.msg("comm_msg", {"comm_id": slider, "data": data})
    kernel.shell_channel.send(message)
    changed = drain(kernel, models, message["header"]["msg_id"])
    kinds = {models[name]["_model_name"]: name for name in changed}
    for kind in ("HTMLModel", "ImageModel"):
        assert models[kinds[kind]]["value"] != before[kinds[kind]]["value"], f"{kind} did not change"
