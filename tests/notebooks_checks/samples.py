"""A small lesson that keeps every rule, for the tests to break in one place at a time."""

from __future__ import annotations

import base64
import io
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

FIRST = """# Fit a line

One sentence.

**You will be able to**

- standardise features with training statistics
- write gradient descent by hand
- check the gradient numerically

About 20 minutes."""

LAST = """## You have

- standardised the features with training statistics
- written gradient descent by hand
- checked the gradient numerically

<details><summary>Solution</summary>

```python
check("01.solution", 1)
```

</details>"""


def png(*colours: int) -> str:
    """A picture with one pixel a colour, as a notebook stores it."""
    file = io.BytesIO()
    picture = Image.new("L", (len(colours), 1))
    picture.putdata(colours)
    picture.save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode()


def picture_output(data: str, **changes: Any) -> NotebookNode:
    """An output with a picture and its words."""
    words = {"image/png": {"alt": "the loss falls to its floor"}}
    bundle = {"image/png": data, "text/plain": "<figure 2x1>"}
    return new_output("display_data", data=bundle, metadata=changes.get("metadata", words))


def good() -> NotebookNode:
    """A notebook without fault."""
    cells = [
        new_markdown_cell(FIRST),
        new_code_cell("print('a')", outputs=[new_output("stream", name="stdout", text="a\n")]),
        new_code_cell("show()", outputs=[picture_output(png(0, 255))]),
        new_code_cell('guess("01.limit", ...)', outputs=[]),
        new_markdown_cell(LAST.replace('check("01.solution", 1)', "pass")),
    ]
    count = 0
    for cell in cells:
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return new_notebook(cells=cells, metadata={**kernel, "language_info": {"name": "python"}})
