"""What `run.json` and journals of runs have: a folder may come from somebody else, so that its record is checked before it is used."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidegate.files import limited

RECORD = "run.json"
OTHERS = {"tune.json": ("a study", "tune"), "compare.json": ("a comparison", "compare")}
"""The records of what is no run, what it is, and the command."""
MOST_BYTES = 128 << 20
"""Of a record, of a journal, and of a figure that is shown again."""
OF_RECORD: dict[str, Any] = {
    "experiment": str, "source": str | None, "backend": str, "parameters": dict, "seeds": list, "rows": list, "claims": list,
    "warnings": list, "versions": dict, "files": dict | None, "live_profile": str | None, "landscape": dict,
}  # fmt: skip
OF_LISTS: dict[str, Any] = {"seeds": int, "rows": dict, "claims": dict, "warnings": str}
OF_ROW: dict[str, Any] = {"case": str, "seed": int}
OF_CLAIM: dict[str, Any] = {"statement": str, "of": str, "holds": bool, "measured": object}
OF_LANDSCAPE: dict[str, Any] = {
    "over": list,
    "column": str | None,
    "by": str | None,
    "where": list,
    "likely": list,
}
MOST_WHOLE = 2**64
"""What whole numbers of a record are below; larger ones are no numbers of a table."""


def wrong_in(record: Mapping[str, Any]) -> str | None:
    """What is wrong in the contents of a `run.json`; `None` if nothing is."""
    for name, kind in OF_RECORD.items():
        if name in record and not isinstance(record[name], kind):
            return f"{name} has the wrong type"
    for name, kind in OF_LISTS.items():
        if not all(isinstance(one, kind) for one in record.get(name, ())):
            return f"{name} has a value of the wrong type"
    for name, kinds in (("rows", OF_ROW), ("claims", OF_CLAIM)):
        for number, one in enumerate(record.get(name, ())):
            for key, kind in kinds.items():
                # Rows that were put together by hand may be of no run: they have no case.
                if name == "rows" and "case" not in one:
                    continue
                if key not in one or not isinstance(one[key], kind):
                    return f"{name}[{number}] has no {key} of the right type"
    for number, row in enumerate(record["rows"]):
        # Folders of tables have the case's name.
        case = row.get("case", "")
        if "/" in case or "\0" in case:
            return f"rows[{number}]: case {case!r} is no name"
    return _wrong_in_landscape(record["landscape"], record["rows"]) if "landscape" in record else None


def _wrong_in_landscape(landscape: Mapping[str, Any], rows: list[dict[str, Any]]) -> str | None:
    """What is wrong in what a sweep draws of its rows."""
    if not landscape.get("over"):
        return "landscape has no over"
    for name, value in landscape.items():
        if name not in OF_LANDSCAPE:
            return f"landscape has {name!r}, which no landscape has"
        if not isinstance(value, OF_LANDSCAPE[name]):
            return f"landscape: {name} has the wrong type"
    names = [*landscape["over"], *landscape.get("likely", ())]
    wheres = landscape.get("where", ())
    if not all(isinstance(one, list) and len(one) == 2 for one in wheres) or not all(
        isinstance(one, str) for one in itertools.chain(names, *wheres)
    ):
        return "landscape has a value of the wrong type"
    for name in ("of", *landscape["over"]):
        if any(name not in row for row in rows):
            return f"it is a sweep's, and a row has no {name}"
    return None


NOT_FINITE = "not_finite"
"""The key of a record that says which null of its rows was a number: for each, the way to it from `rows` and `nan`, `inf` or `-inf`."""


def not_finite(value: Any, *way: Any) -> Iterator[list[Any]]:
    """What JSON does not have.

    >>> list(not_finite([{"rtt_ms": float("nan")}]))
    [[0, 'rtt_ms', 'nan']]
    """
    if isinstance(value, float) and not math.isfinite(value):
        yield [*way, str(value)]
    elif isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in items:
            yield from not_finite(one, *way, key)


def restore(rows: list[dict[str, Any]], places: Any) -> None:
    """Put back what `not_finite` gave. Raises `ValueError` for places that are not there."""
    for place in places if isinstance(places, list) else [places]:
        try:
            number, *way, last, text = place
            at: Any = rows[number]
            for key in way:
                at = at[key]
            if at[last] is not None or text not in ("nan", "inf", "-inf"):
                raise ValueError
            at[last] = float(text)
        except (ValueError, TypeError, LookupError):
            raise ValueError(f"{NOT_FINITE} has {place!r}, which is no number of the rows") from None


def other(folder: Path) -> str | None:
    """What to say of a folder of a study or a comparison, which is no run's."""
    for name, (what, command) in OTHERS.items():
        if (folder / name).is_file():
            return (
                f"{folder} holds {what} and no run: its page is {folder / 'report.html'}, "
                f"which the same `tidegate {command}` command makes again"
            )
    return None


def read(file: Path) -> dict[str, Any]:
    """The contents of a `run.json`. Raises `OSError`, and `ValueError` with what is wrong in it."""
    record = _parsed(_text(file))
    if not isinstance(record, dict):
        raise ValueError(f"{RECORD} is not a JSON object")
    if missing := {"experiment", "parameters", "rows"} - record.keys():
        raise ValueError(f"{RECORD} has no {', '.join(sorted(missing))}")
    if (wrong := wrong_in(record)) is not None:
        raise ValueError(f"{RECORD}: {wrong}")
    try:
        restore(record["rows"], record.pop(NOT_FINITE, []))
    except ValueError as error:
        raise ValueError(f"{RECORD}: {error}") from None
    return record


def _text(file: Path) -> str:
    try:
        return limited(file, MOST_BYTES).decode()
    except UnicodeDecodeError:
        raise ValueError(f"{file.name} is not text in UTF-8") from None
    except ValueError as error:
        raise ValueError(f"{file.name} {error}") from None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{RECORD} is not JSON: {error}") from None


def _whole(digits: str) -> int:
    if abs(number := int(digits)) >= MOST_WHOLE:
        raise ValueError(f"a whole number has {len(digits)} digits")
    return number


def add_journal(record: dict[str, Any], journal: Path) -> None:
    """Add what a journal has to a record that has not. Raises `OSError`, and `ValueError` for a journal that is too long."""
    had = {(row.get("case"), row.get("seed")) for row in record["rows"]}
    for line in _text(journal).splitlines():
        with suppress(ValueError, KeyError, TypeError):
            done = json.loads(line)
            if (done["case"], done["seed"]) in had:
                continue
            restore(done["rows"], done.get(NOT_FINITE, []))
            about = f"{done['case']}, seed {done['seed']}: "
            record["rows"] += done["rows"]
            said = [f"{about}{warning}" for warning in done["warnings"]]
            record["warnings"] += [warning for warning in said if warning not in record["warnings"]]
