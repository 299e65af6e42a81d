"""One look for all figures, and the version line of a lesson."""

from __future__ import annotations

import platform
from importlib.metadata import version
from importlib.resources import as_file, files

STYLE = files("nnlab.lessons") / "course.mplstyle"
SAVE = {"metadata": {"Software": None}, "bbox_inches": None}  # no version in the file, the size as asked


def start() -> None:
    """Give this notebook the course's look. Called once, after the imports.

    `plt.show()` then draws at 80 dpi, with the size that the figure was given and without a version mark in the
    file, so that running a lesson again changes no byte. `lessons.figures.show(fig, alt=...)` does more.
    """
    from IPython.core.getipython import get_ipython
    from matplotlib import style

    with as_file(STYLE) as path:
        style.use(path)
    shell = get_ipython()
    if shell is not None:
        shell.run_line_magic("config", f"InlineBackend.print_figure_kwargs = {SAVE}")


def versions() -> str:
    """What this machine runs: the versions of nnlab, NumPy and Python in one line."""
    from nnlab import __version__

    return f"nnlab {__version__}, NumPy {version('numpy')}, Python {platform.python_version()}"
