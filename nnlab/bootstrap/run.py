"""Starting the job itself, in the place of this process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from nnlab.bootstrap.clone import Clone


def job_environment(clone: Clone, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables for the job: the clone comes first where Python looks for packages.

    So the lessons import this clone's nnlab also in an environment where nnlab is not installed.
    """
    path = os.pathsep.join(filter(None, (str(clone.root), environment.get("PYTHONPATH"))))
    return {**environment, "PYTHONPATH": path}


def start(clone: Clone, python: Path, arguments: Sequence[str], *, folder: Path) -> int:
    """Run Python with these arguments in `folder` and return its exit status; on POSIX it takes over this process."""
    command = [str(python), *arguments]
    variables = job_environment(clone, os.environ)
    if os.name != "nt":
        os.chdir(folder)
        os.execve(command[0], command, variables)
    with subprocess.Popen(command, cwd=folder, env=variables) as job:
        while True:
            try:
                return job.wait()
            except KeyboardInterrupt:  # the job got the Ctrl-C too and answers it itself
                continue
