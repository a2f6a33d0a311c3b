"""Pages of studies (`tidegate tune`) and of comparisons (`tidegate compare`): what was found, the figure, parameters, the command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from html import escape

from tidegate.experiments.input_file import as_given, in_words
from tidegate.experiments.registry import Experiment
from tidegate.report.page import Record, experiment_of, figure, made_by, plots, table, whole
from tidegate.report.plots import Plot, comparison_plots, study_plots


def _section(name: str, title: str, body: str) -> str:
    return f'<section id="{name}"><h2>{title}</h2>{body}</section>'


def _page(title: str, sections: Mapping[str, tuple[str, str]], warnings: list[str]) -> str:
    links = "".join(f'<a href="#{name}">{text}</a>' for name, (text, _) in sections.items())
    said = "".join(f"<p class=warning>{escape(one)}</p>" for one in warnings)
    return whole(title, [links], said + "".join(_section(name, *one) for name, one in sections.items()))


def _charts(found: list[Plot]) -> dict[str, tuple[str, str]]:
    return {"charts": ("Charts", plots(found))} if found else {}


def _repeat(command: str) -> tuple[str, str]:
    return "Repeat it", f"<pre tabindex=0>{escape(command)}</pre>"


def of_study(record: Record, png: bytes) -> str:
    """The report of a study: the contents of `tune.json`, and its figure."""
    columns = [f"{column} ({direction})" for column, direction in record["objectives"]]
    best = [
        {"trial": one["trial"], **dict(zip(columns, one["values"], strict=True)), **one["parameters"]}
        for one in record["best"]
    ]
    parameters = [
        {"parameter": name, "value": in_words(value)} for name, value in record["parameters"].items()
    ]
    parameters += [{"parameter": "range", "value": one} for one in record["ranges"]]
    sections = {
        "best": ("Best trials", table(best)),
        "figure": ("Figure", figure(png, f"Figure of a study of {record['experiment']}")),
        **_charts(study_plots(record)),
        "trials": ("Trials", table(record["trials"])),
        "parameters": ("Parameters and versions", table(parameters) + made_by(record)),
        "repeat": _repeat(study_command(record)),
    }
    return _page(f"study of {record['experiment']}", sections, record["warnings"])


def study_command(record: Record) -> str:
    """The command that makes a study again; one in another storage is given that anew."""
    one: Experiment | None = experiment_of(record)
    defaults = one.parameters() if one is not None else {}
    words = ["tidegate", "tune", str(record["experiment"])]
    for text in record["ranges"]:
        words += ["--range", text]
    for column, direction in record["objectives"]:
        words += [f"--{direction[:-3]}ise", column]
    for name, value in record["parameters"].items():
        if name not in defaults or json.loads(json.dumps(defaults[name])) != json.loads(json.dumps(value)):
            words += ["--set", f"{name}={as_given(value)}"]
    for name, value in record["where"]:
        words += ["--where", f"{name}={value}"]
    seeds = record["seeds"]
    words += ["--trials", str(len(record["trials"])), "--batch", str(record["batch"])]
    words += ["--seed", str(seeds[0])] if seeds[0] != 1 else []
    words += ["--repeat", str(len(seeds))] if len(seeds) > 1 else []
    words += ["--prune"] if record["prune"] else []
    return shlex.join(words)


def of_comparison(record: Record, png: bytes, command: str) -> str:
    """The report of a comparison: the contents of `compare.json`, its figure, and the command that made it."""
    sides = [
        {
            "side": one["name"],
            "experiment": one["experiment"],
            "backend": one["backend"],
            "seeds": in_words(one["seeds"]),
            "version": one["version"],
            **{name: in_words(value) for name, value in one["parameters"].items()},
        }
        for one in record["sides"]
    ]
    rows = [
        {"case": row["case"], "row": row["label"], "quantity": row["quantity"], "unit": row["unit"]}
        | _cells(row)
        for row in record["rows"]
    ]
    left_out = (
        [f"left out, as not all have them: {', '.join(record['left_out'])}"] if record["left_out"] else []
    )
    note = (
        "<p class=soft>Medians over seeds with least and greatest; differences from the first side are paired by seed, with their "
        f"{100 * record['confidence']:g} % bootstrap interval.</p>"
    )
    sections = {
        "rows": ("Results", note + table(rows)),
        "figure": ("Figure", figure(png, "Figure of the comparison")),
        **_charts(comparison_plots(record)),
        "sides": ("What is compared", table(sides)),
        "repeat": _repeat(command),
    }
    return _page(f"comparison of {', '.join(one['name'] for one in record['sides'])}", sections, left_out)


def _cells(row: Record) -> Record:
    found: Record = {}
    for side in row["sides"]:
        name = side["name"]
        found |= {f"{name}: {what}": side[what] for what in ("median", "least", "most")}
        if "difference" in side:
            low, high = side["interval"] or (None, None)
            found |= {f"{name}: difference": side["difference"], f"{name}: from": low, f"{name}: to": high}
    return found
