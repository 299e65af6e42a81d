"""What all widgets of the course share: controls, a line of numbers, one picture, errors in view."""

from __future__ import annotations

import base64
import html
import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import ipywidgets
from matplotlib.figure import Figure

from nnlab.lessons.figures.show import png


class Explorer(ipywidgets.VBox):  # type: ignore[misc]
    """Base class. A subclass builds its figure once, calls `super().__init__`, and answers in `update`.

    controls: name → control; the names are the keywords of `update` and `show`. figure: kept for the widget's
    life, its artists are changed, so that there is never a second one. goal: what to find with the controls.
    A control that starts work acts on release (`continuous_update=False`).
    """

    def __init__(self, controls: Mapping[str, ipywidgets.Widget], figure: Figure, *, goal: str) -> None:
        self.controls, self.figure = dict(controls), figure
        self.numbers, self.message = ipywidgets.HTML(), ipywidgets.HTML()
        width = f"{round(figure.get_figwidth() * figure.dpi)}px"  # its own size, or it would be stretched and blurred
        self.picture = ipywidgets.Image(format="png", layout=ipywidgets.Layout(width=width, max_width="100%"))
        heading = ipywidgets.HTML(f"<b>Goal:</b> {html.escape(goal)}")
        super().__init__([heading, *self.controls.values(), self.numbers, self.message, self.picture])
        for control in self.controls.values():
            control.observe(lambda change: self.show(), names="value")
        self._words = f"{type(self).__name__}: {plain(self._answer({}))}"
        self._static = png(self.figure)
        self.figure.set_layout_engine("none")  # the places are found once, which halves the time of each answer

    @abstractmethod
    def update(self, *args: Any, **values: Any) -> str:
        """Change the figure's artists for these values and return the numbers as HTML.

        Raises ValueError for a value that makes no sense, before it touches an artist.
        """

    def show(self, **values: Any) -> str:
        """Answer for the controls' values, or for other `values`, and return the text that the widget shows.

        An error is shown in the widget and not raised: the last picture stays, and the next valid value works.
        """
        try:
            return plain(self._answer(values))
        except Exception as error:
            self.message.value = f'<span style="color:#b00020">⚠ {html.escape(str(error))}</span>'
            return plain(self.message.value)

    def _answer(self, values: dict[str, Any]) -> str:
        numbers = self.update(**{name: control.value for name, control in self.controls.items()} | values)
        self.picture.value = png(self.figure, colours=None)
        self.numbers.value, self.message.value = numbers, ""
        return numbers

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The live widget, and for readers without a kernel the picture and words as they were when it was built."""
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs) or {}
        bundle["text/plain"] = self._words
        bundle["image/png"] = base64.b64encode(self._static).decode()
        return bundle, {"image/png": {"alt": self._words}}


def log_slider(description: str, value: float, *, low: int = -4, high: int = 0, step: float = 0.02) -> Any:
    """A slider over 10^low … 10^high that acts on release and shows small rates as they are."""
    return ipywidgets.FloatLogSlider(
        value=value, base=10, min=low, max=high, step=step, description=description,
        continuous_update=False, readout_format=".3g", layout=ipywidgets.Layout(width="480px"),
    )  # fmt: skip


def plain(markup: str) -> str:
    """HTML without its tags."""
    return html.unescape(re.sub(r"<[^>]+>", "", markup))
