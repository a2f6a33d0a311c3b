"""Suggestions for mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

NEAR = 0.6
"""How alike two names are that are taken for one (`difflib`'s ratio, from 0 to 1)."""


def nearest(name: object, known: Iterable[object]) -> str | None:
    """The known name that is most like `name`, if one is near; capitals do not matter.

    >>> nearest("meter.rate", ["aqm.rates", "meter.rates"])
    'meter.rates'
    >>> nearest("nothing", ["aqm.rates"])

    A name without its system is near too:

    >>> nearest("phases", ["aqm.phases"])
    'aqm.phases'
    """
    if not isinstance(name, str) or not name:
        return None
    names = {str(one).lower(): str(one) for one in known}
    wanted = name.lower()
    found = difflib.get_close_matches(wanted, names, 1, NEAR)
    if not found:
        ends = [one for one in names if one.endswith(f".{wanted}")]
        found = ends if len(ends) == 1 else []
    return names[found[0]] if found else None


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """A question for a message, with a space behind it; empty if nothing is near.

    >>> did_you_mean("cubik", ["reno", "cubic"]) + "known: reno, cubic"
    "did you mean 'cubic'? known: reno, cubic"
    """
    near = nearest(name, known)
    return "" if near is None else f"did you mean {near!r}? "
