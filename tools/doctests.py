"""For the site: examples in docstrings (`>>>`) become blocks of Python. An extension of griffe, which reads the docstrings."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^[ ]*>>> .*\n?)(?:^[ ]*\S.*\n?)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Fences around examples."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        """An object has been read."""
        if obj.docstring is not None:
            fenced = EXAMPLE.sub(lambda one: f"\n```pycon\n{one[0].rstrip()}\n```\n", obj.docstring.value)
            obj.docstring.value = fenced
