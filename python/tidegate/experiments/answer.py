"""What running an experiment gives: a dict, which a notebook shows as rows, claims and the figure."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from typing import Any

from tidegate.html import paragraph, table


class Answer(dict[str, Any]):
    """The contents of `run.json`, or of `tune.json`, with where they are as `out`."""

    complete_before = False
    """Whether it was all there, so that nothing was run."""

    def _repr_html_(self) -> str:
        rows = self.get("trials", self.get("rows", []))
        names = list(dict.fromkeys(name for row in rows for name in row))
        parts = [paragraph(f"{self.get('experiment', '')}: {self.get('out', '')}")]
        parts.append(table(names, [[_shown(row.get(name)) for name in names] for row in rows]))
        claims = [
            ("holds" if one["holds"] else "does not hold", one["statement"], one["measured"])
            for one in self.get("claims", [])
        ]
        parts.append(table(["verdict", "claim", "measured"], claims))
        parts += [paragraph(f"warning: {one}") for one in self.get("warnings", [])]
        figure = Path(str(self.get("out", ""))) / "figure.png"
        if figure.is_file():
            data = base64.b64encode(figure.read_bytes()).decode()
            parts.append(f'<p><img alt="{escape(str(figure))}" src="data:image/png;base64,{data}"/></p>')
        return "".join(parts)


def _shown(value: Any) -> object:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else value
