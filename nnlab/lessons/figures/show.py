"""Show a figure as a small picture with its content told in words under it."""

# mypy: disallow-untyped-calls=False
from __future__ import annotations

import html
import io

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

COLOURS = 64  # a palette makes the picture three to four times smaller than true colour


def show(fig: Figure, *, alt: str) -> None:
    """Display the figure with a text alternative under it, and close it.

    alt: what a reader who cannot see the picture has to know, a sentence or two; screen readers find it at the
    picture too. Raises ValueError where it is empty.
    """
    from IPython.display import display
    from matplotlib import pyplot as plt

    alt = " ".join(alt.split())
    if not alt:
        raise ValueError("show needs alt: the content of the figure in words")
    size = "x".join(str(round(inches * fig.dpi)) for inches in fig.get_size_inches())
    bundle = {"image/png": png(fig), "text/plain": f"<figure {size}>"}
    display(bundle, raw=True, metadata={"image/png": {"alt": alt}})
    caption = f'<p style="max-width:46em;margin:0;opacity:.8;font-size:90%"><i>In words:</i> {html.escape(alt)}</p>'
    display({"text/html": caption, "text/plain": f"In words: {alt}"}, raw=True)
    plt.close(fig)


def png(fig: Figure, *, colours: int | None = COLOURS) -> bytes:
    """The figure as PNG bytes, the same each time; `colours=None` keeps true colour, which is quicker to make."""
    picture = pixels(fig)
    if colours is not None:
        picture = picture.quantize(colours, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    file = io.BytesIO()
    picture.save(file, format="PNG", compress_level=9 if colours else 1)
    return file.getvalue()


def pixels(fig: Figure) -> Image.Image:
    """Draw the figure into an RGB picture, at its own size and resolution."""
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
