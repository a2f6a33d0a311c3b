"""The page of a report: everything in one file, every name escaped, and a policy under which nothing else could run or be fetched."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from tidegate import assets
from tidegate._core import TidegateError
from tidegate.experiments import folder
from tidegate.experiments.columns import axis_label, is_number
from tidegate.experiments.files import is_reference
from tidegate.experiments.input_file import as_given, in_words
from tidegate.experiments.plan import Run
from tidegate.experiments.registry import Experiment, find
from tidegate.experiments.sweep import PREFIX, is_sweep
from tidegate.files import replacing
from tidegate.report.plots import Plot, row_axes, row_plots, sweep_plots
from tidegate.report.series import Chart, Floats, charts
from tidegate.units import counted

MOST_ROWS = 1000
"""Of a table; the run's folder has all."""
MOST_NUMBERS = 1_500_000
"""In the time series of a page: some 8 MB. Cases that come later have none."""
Record = dict[str, Any]


def of_run(record: Record, runs: Sequence[Run], png: bytes | None) -> str:
    """The report of a run: the contents of `run.json`, its runs with their tables, and its figure (PNG); of a sweep, without its runs."""
    title = f"{record['experiment']} ({record.get('backend', 'sim')})"
    room = [MOST_NUMBERS]
    return whole(title, [_navigation(record, "")], _run(record, runs, png, room, ""))


def write(place: Path) -> Path:
    """Write the report of a run's folder anew, into that folder. Raises `TidegateError` for one that holds no run."""
    record = folder.read_record(place)
    text = of_run(record, _runs(place, record), folder.figure_of(place))
    return folder.write_report(place, text)


def _runs(place: Path, record: Record) -> list[Run]:
    """Those whose time series are shown: of a sweep none, which has too many."""
    return [] if is_sweep(record) else folder.runs_of(place, record)


def join(places: Sequence[Path], out: Path) -> Path:
    """Write one report of several runs to a file."""
    if out.is_dir():
        raise TidegateError(f"{out} is a folder; give a file's name with --out, as report.html")
    if out.suffix not in (".html", ".htm"):
        # It is replaced, and may be a file of the user's.
        raise TidegateError(f"{out}: the page of a report has a name with .html; give such a name")
    if not out.parent.is_dir():
        raise TidegateError(f"{out}: there is no folder {out.parent}; make it first")
    records = [folder.read_record(place) for place in places]
    rows = []
    for number, (place, record) in enumerate(zip(places, records, strict=True)):
        claims = record.get("claims", [])
        rows.append(
            {
                "run": f'<a href="#run{number}">{escape(str(place))}</a>',
                "experiment": escape(str(record["experiment"])),
                "backend": escape(str(record.get("backend", ""))),
                "seeds": escape(_seeds(record)),
                "claims": _tally(claims),
                "version": escape(str(record.get("versions", {}).get("tidegate", ""))),
            }
        )
    room = [MOST_NUMBERS]
    parts = [f"<section id=runs><h2>Runs</h2>{_html_table(rows)}</section>", _together(places, records)]
    for number, (place, record) in enumerate(zip(places, records, strict=True)):
        prefix = f"run{number}-"
        body = _run(record, _runs(place, record), folder.figure_of(place), room, prefix)
        parts.append(
            f'<article id="run{number}"><h2>{escape(str(place))}</h2><p>{_said(record)}</p>{body}</article>'
        )
    links = "".join(f'<a href="#run{n}">{escape(str(place))}</a>' for n, place in enumerate(places))
    text = whole(counted(len(places), "run"), [links], "".join(parts))
    with replacing(out) as file:
        file.write(text.encode())
    return out


def command(record: Record) -> str:
    """The command that repeats a run: what differs from the defaults is set.

    >>> command({"experiment": "x.y", "backend": "sim", "parameters": {"a": [1, 2], "quick": True}, "seeds": [3, 4]})
    'tidegate run x.y --quick --set a=1,2 --seed 3 --repeat 2'
    """
    # As JSON has them: a run that has just ended has tuples.
    parameters = json.loads(json.dumps(record["parameters"]))
    quick, backend = bool(parameters.pop("quick", False)), record.get("backend", "sim")
    one = experiment_of(record)
    # Where they are not known all of it is said.
    defaults = one.parameters(quick, backend) if one is not None else {}
    over = parameters.pop("over", {}) if is_sweep(record) else {}
    named = str(record.get("source") or record["experiment"]).removeprefix(PREFIX)
    words = ["tidegate", "sweep" if over else "run", named]
    for name, values in over.items():
        words += ["--over", f"{name}={as_given(values)}"]
    landscape = record.get("landscape", {})
    for option in ("column", "by"):
        words += [f"--{option}", str(landscape[option])] if landscape.get(option) else []
    for name, value in landscape.get("where", ()):
        words += ["--where", f"{name}={value}"]
    words += ["--backend", backend] if backend != "sim" else []
    words += ["--live-profile", record["live_profile"]] if record.get("live_profile") else []
    words += ["--quick"] if quick else []
    for name, value in parameters.items():
        if name not in over and (name not in defaults or json.loads(json.dumps(defaults[name])) != value):
            words += ["--set", f"{name}={as_given(value)}"]
    seeds = record.get("seeds") or [1]
    lines = []
    for first, count in _blocks(seeds):
        line = [*words, *(["--seed", str(first)] if first != 1 else [])]
        line += ["--repeat", str(count)] if count > 1 else []
        if len(seeds) != count:
            line += ["--out", f"runs/{record['experiment']}-from-{first}"]
        lines.append(shlex.join(line))
    return "\n".join(lines)


def experiment_of(record: Record) -> Experiment | None:
    """The experiment, if it is one of those installed. A file that a record names is not run: it may be a stranger's."""
    name = str(record["experiment"]).removeprefix(PREFIX)
    if record.get("source") or is_reference(name):
        return None
    try:
        return find(name)
    except TidegateError:
        return None


def _blocks(seeds: Iterable[int]) -> list[tuple[int, int]]:
    """First seed and number of those that follow each other."""
    blocks: list[tuple[int, int]] = []
    for seed in sorted(seeds):
        if blocks and seed == sum(blocks[-1]):
            blocks[-1] = (blocks[-1][0], blocks[-1][1] + 1)
        else:
            blocks.append((seed, 1))
    return blocks


def _seeds(record: Record) -> str:
    blocks = _blocks(record.get("seeds", []))
    return ", ".join(
        str(first) if count == 1 else f"{first} to {first + count - 1}" for first, count in blocks
    )


def _tally(claims: list[Record]) -> str:
    if not claims:
        return "none"
    hold = sum(bool(claim["holds"]) for claim in claims)
    kind = "holds" if hold == len(claims) else "fails"
    return f'<span class="verdict {kind}">{hold} of {len(claims)} hold</span>'


def _said(record: Record) -> str:
    """One line on a run."""
    one = experiment_of(record)
    summary = f"{escape(one.summary)} " if one is not None else ""
    parts = [f"{escape(str(record['experiment']))} in backend {escape(str(record.get('backend', 'sim')))}"]
    parts.append(
        f"seeds {escape(_seeds(record))}"
        if len(record.get("seeds", [])) != 1
        else f"seed {record['seeds'][0]}"
    )
    return f"{summary}<span class=soft>{', '.join(parts)}.</span> Claims: {_tally(record.get('claims', []))}"


def _navigation(record: Record, prefix: str) -> str:
    there = [("claims", "Claims")] if record.get("claims") else []
    there += [("figure", "Figure")]
    there += [("series", "Over time")] if not is_sweep(record) else []
    there += [("charts", "Charts")] if _has_charts(record) else []
    there += [("rows", "Results"), ("parameters", "Parameters"), ("repeat", "Repeat it")]
    return "".join(f'<a href="#{prefix}{name}">{text}</a>' for name, text in there)


def _has_charts(record: Record) -> bool:
    """Whether there are charts of its rows."""
    return bool(record["rows"] if is_sweep(record) else row_axes(record))


def _run(record: Record, runs: Sequence[Run], png: bytes | None, room: list[int], prefix: str) -> str:
    """The sections of a run. `room` has how many numbers the page still takes."""
    parts = [f"<p>{_said(record)}</p>"] if not prefix else []
    if record.get("interrupted"):
        parts.append("<p class=warning>This run was interrupted; what it had done by then is here.</p>")
    parts += [f"<p class=warning>{escape(str(warning))}</p>" for warning in record.get("warnings", [])]
    if record.get("claims"):
        rows = [_claim(claim) for claim in record["claims"]]
        parts.append(f'<section id="{prefix}claims"><h2>Claims</h2>{_html_table(rows)}</section>')
    if png is not None:
        image = figure(png, f"Figure of {record['experiment']}")
        parts.append(f'<section id="{prefix}figure"><h2>Figure</h2>{image}</section>')
    parts.append(_series(runs, room, prefix))
    if _has_charts(record):
        body = plots(sweep_plots(record)) if is_sweep(record) else _choices(row_plots(record))
        parts.append(f'<section id="{prefix}charts"><h2>Charts</h2>{body}</section>')
    parts.append(f'<section id="{prefix}rows"><h2>Results</h2>{table(record["rows"])}</section>')
    given = dict(record["parameters"])
    over = given.pop("over", {}) if is_sweep(record) else {}
    parameters = [{"parameter": name, "value": in_words(value)} for name, value in given.items()]
    parameters += [
        {"parameter": f"{name}, each of", "value": as_given(values)} for name, values in over.items()
    ]
    parts.append(
        f'<section id="{prefix}parameters"><h2>Parameters and versions</h2>{table(parameters)}{made_by(record)}</section>'
    )
    parts.append(
        f'<section id="{prefix}repeat"><h2>Repeat it</h2><pre tabindex=0>{escape(command(record))}</pre></section>'
    )
    return "".join(parts)


def figure(png: bytes, text: str) -> str:
    """An image that is in the page."""
    data = base64.b64encode(png).decode()
    return f'<img class=figure alt="{escape(text)}" src="data:image/png;base64,{data}">'


def _claim(claim: Record) -> dict[str, str]:
    kind, verdict = ("holds", "holds") if claim["holds"] else ("fails", "does not hold")
    why = "" if claim["holds"] else (claim.get("why") or "not known")
    given = {
        "claim": claim["statement"],
        "of": claim["of"],
        "published": claim.get("published") or "",
        "measured": claim["measured"],
        "why": why,
    }
    return {"verdict": f'<span class="verdict {kind}">{verdict}</span>'} | {
        k: escape(str(v)) for k, v in given.items()
    }


def _together(places: Sequence[Path], records: Sequence[Record]) -> str:
    """The results of runs of the same experiment in one table."""
    by_name: dict[str, list[Record]] = {}
    for place, record in zip(places, records, strict=True):
        by_name.setdefault(str(record["experiment"]), []).extend(
            {"run": str(place), **row} for row in record["rows"]
        )
    several = [name for name in by_name if sum(r["experiment"] == name for r in records) > 1]
    return "".join(
        f"<section><h2>All runs of {escape(name)}</h2>{table(by_name[name])}</section>" for name in several
    )


def made_by(record: Record) -> str:
    """A table of the versions in a record; records of early versions have none."""
    return table([{"of": name, "version": value} for name, value in record.get("versions", {}).items()])


def table(rows: Sequence[Record]) -> str:
    """A table of values that can be sorted."""
    if not rows:
        return "<p class=soft>There are none.</p>"
    names = list(dict.fromkeys(name for row in rows for name in row))
    numeric = {name: all(row.get(name) is None or is_number(row.get(name)) for row in rows) for name in names}
    lines = []
    for row in rows[:MOST_ROWS]:
        cells = []
        for name in names:
            value = row.get(name)
            if isinstance(value, float) and math.isfinite(value):
                cells.append(f'<td class=n data-v="{value!r}" title="{value!r}">{value:.4g}</td>')
            else:
                kind = " class=n" if numeric[name] else ""
                cells.append(f"<td{kind}>{'' if value is None else escape(str(value))}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return _frame([(escape(str(name)), numeric[name]) for name in names], lines) + _left(len(rows))


def _left(height: int) -> str:
    if height <= MOST_ROWS:
        return ""
    return f"<p class=soft>The first {MOST_ROWS} of {height} rows; run.json in the run's folder has all.</p>"


def _html_table(rows: Sequence[dict[str, str]]) -> str:
    """A table of cells that are HTML."""
    lines = [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row.values())}</tr>" for row in rows]
    return _frame([(name, False) for name in rows[0]], lines)


def _frame(heads: Sequence[tuple[str, bool]], lines: Sequence[str]) -> str:
    head = "".join(
        f"<th scope=col{' class=n' if numeric else ''}><button type=button>{name}</button></th>"
        for name, numeric in heads
    )
    return (
        f"<div class=scroll tabindex=0><table class=sortable><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _series(runs: Sequence[Run], room: list[int], prefix: str) -> str:
    """Time series of each case with its first seed."""
    shown: list[tuple[str, list[Record]]] = []
    left_out = 0
    seen: set[str] = set()
    for run in runs:
        if run.case in seen:
            continue
        seen.add(run.case)
        if room[0] <= 0:
            left_out += 1
            continue
        found = charts(run.tables)
        if found:
            room[0] -= sum(len(one.time_s) * (1 + len(one.series)) for one in found)
            shown.append((f"{run.case}, seed {run.seed}", [_packed(one) for one in found]))
    if not shown:
        return ""
    choice = ""
    if len(shown) > 1:
        options = "".join(f"<option>{escape(name)}</option>" for name, _ in shown)
        choice = f"<label>Case <select>{options}</select></label>"
    else:
        choice = f"<p class=soft>{escape(shown[0][0])}</p>"
    rest = (
        f"<p class=soft>{counted(left_out, 'case')} more without room here: <code>tidegate view</code> shows them.</p>"
        if left_out
        else ""
    )
    data = script_json([one for _, one in shown])
    return (
        f'<section class=series id="{prefix}series"><h2>Over time</h2>{choice}<p class=soft>{ZOOM}</p><div class=charts></div>{rest}'
        f'<script type="application/json">{data}</script></section>'
    )


ZOOM = "Drag to zoom, double-click to see all; with the keyboard: arrows, + and -, 0."


def plots(found: Sequence[Plot]) -> str:
    """Charts that are not over time."""
    if not found:
        return "<p class=soft>There are none.</p>"
    return _chart_box([[_drawn(one) for one in found]])


def _choices(found: Mapping[str, Sequence[Plot]]) -> str:
    """Charts that are not over time, of one column at a time."""
    if not found:
        return plots([])
    options = "".join(f"<option>{escape(axis_label(name))}</option>" for name in found)
    return _chart_box(
        [[_drawn(one) for one in charts] for charts in found.values()],
        f"<label>Column <select>{options}</select></label>",
    )


def _chart_box(cases: Sequence[Sequence[Record]], choice: str = "") -> str:
    return (
        f"<div class=series>{choice}<p class=soft>{ZOOM}</p><div class=charts></div>"
        f'<script type="application/json">{script_json(cases)}</script></div>'
    )


def _drawn(plot: Plot) -> Record:
    over: Record = {"x": plot.over, "log": plot.log, "points": [line.points for line in plot.lines]}
    if plot.ticks:
        over["ticks"] = list(plot.ticks)
    if any(line.ends for line in plot.lines):
        over["ends"] = [line.ends and [_floats(end) for end in line.ends] for line in plot.lines]
    if any(line.texts for line in plot.lines):
        over["texts"] = [list(line.texts) for line in plot.lines]
    return {
        "title": plot.title,
        "unit": plot.unit,
        "x": _floats(plot.x),
        "series": [[line.name, _floats(line.y)] for line in plot.lines],
        "note": plot.note,
        "over": over,
    }


def _packed(chart: Chart) -> Record:
    note = (
        f"The {len(chart.series)} largest of {len(chart.series) + chart.left_out}." if chart.left_out else ""
    )
    series = [[name, _floats(values)] for name, values in chart.series]
    return {
        "title": chart.title,
        "unit": chart.unit,
        "x": _floats(chart.time_s),
        "series": series,
        "note": note,
    }


def _floats(values: Floats) -> str:
    # What has no place on an axis is a gap.
    drawn = np.where(np.isfinite(values), values, np.nan)
    return base64.b64encode(np.asarray(drawn, dtype="<f4").tobytes()).decode()


def script_json(value: object) -> str:
    """JSON that nothing in it can end the script of.

    >>> script_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def whole(title: str, navigation: Sequence[str], body: str) -> str:
    """A page of a title, links to its sections, and what is in it."""
    style = assets.text("uplot.min.css") + assets.text("page.css")
    code = "".join(assets.text(name) + "\n" for name in ("uplot.min.js", "charts.js", "report.js"))
    policy = f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} - Tidegate</title><style>{style}</style></head><body>"
        f'<a class=skip href="#content">Skip to the content</a><header><h1>{escape(title)}</h1></header>'
        f"<main id=content><nav class=sections aria-label=Sections>{''.join(navigation)}</nav>{body}</main>"
        "<footer><p>Made by Tidegate. All of it is in this file; nothing is fetched.</p>"
        f"<details><summary>Licence of uPlot, which draws the charts</summary><pre>{escape(assets.licence_of_uplot())}</pre></details>"
        f"</footer><script>{code}</script></body></html>\n"
    )
