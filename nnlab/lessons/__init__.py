"""Teaching aids for the notebooks.

    from nnlab import lessons

    lessons.start()                                  # the course's look, once per notebook
    lessons.guess("01.rate", ...)                    # replace ... by "a", "b" or "c", run, be told right or wrong
    lessons.check("01.predict", predict)             # an exercise that checks itself
    lessons.par(receipt, copies=2, launches=40)      # a device exercise scored on its receipt
    lessons.check_counts(receipt, launches=40)       # assert what the lesson says of a receipt
    lessons.figures.show(fig, alt="what is to be seen")
    lessons.widgets.LearningRate(x, y)               # a slider with a goal

None of them raises in a fresh notebook: where something is still to be filled in, they say so.
"""

from __future__ import annotations

import importlib
from typing import Any

from nnlab.lessons.checks import check
from nnlab.lessons.counts import check_counts
from nnlab.lessons.guesses import guess
from nnlab.lessons.pars import par
from nnlab.lessons.style import start, versions

__all__ = ["check", "check_counts", "figures", "guess", "par", "start", "versions", "widgets"]


def __getattr__(name: str) -> Any:
    if name in ("figures", "widgets"):  # these two load Matplotlib and ipywidgets
        return importlib.import_module(f"nnlab.lessons.{name}")
    raise AttributeError(f"module 'nnlab.lessons' has no attribute {name!r}")
