"""HTML for notebooks: short tables and lines."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 20


def counted(count: int, what: str) -> str:
    """A count with its noun.

    >>> counted(1, "flow"), counted(2, "switch")
    ('1 flow', '2 switches')
    """
    if count == 1:
        return f"1 {what}"
    return f"{count} {what}{'es' if what.endswith('ch') else 's'}"


def paragraph(text: str) -> str:
    """A line of text.

    >>> paragraph("a < b")
    '<p>a &lt; b</p>'
    """
    return f"<p>{escape(text)}</p>"


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], height: int | None = None) -> str:
    """A table of at most 20 rows, with a line on those that are left out of `height`; empty without rows.

    >>> table(["flow"], [[0]])
    '<table><tr><th>flow</th></tr><tr><td>0</td></tr></table>'
    """
    if not rows:
        return ""

    def line(values: Sequence[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(value))}</{tag}>" for value in values) + "</tr>"

    body = "".join(line(row, "td") for row in rows[:MOST_ROWS])
    left = (len(rows) if height is None else height) - MOST_ROWS
    more = paragraph(f"and {left} more") if left > 0 else ""
    return f"<table>{line(columns, 'th')}{body}</table>{more}"


def picture(figure: Figure, what: str) -> str:
    """A figure as an image in the page."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=80)
    data = base64.b64encode(content.getvalue()).decode()
    return f'<p><img alt="{escape(what)}" src="data:image/png;base64,{data}"/></p>'
