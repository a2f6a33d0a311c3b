"""A run's folder in the dashboard: cases and seeds, each with its time series, flows and queues; of a run that is being written, those
that are done.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tidegate._core import TidegateError
from tidegate.experiments import folder
from tidegate.experiments.plan import Run
from tidegate.report.series import charts
from tidegate.view.page import Page

FLOWS = ("start_s", "finish_s", "goodput_mbps", "retransmits", "timeouts", "completion_ms")
QUEUES = ("packets", "dropped", "marked", "queue_delay_ms_mean", "queue_delay_ms_p99", "utilisation")
PERIOD_S = 1.0
"""Between two looks at a run that is being written."""

Stamp = tuple[int, int, int] | None
"""What a file has that another one in its place has not; `None` without a file."""


class Finished:
    """Shows a run's folder."""

    def __init__(self, place: Path) -> None:
        """Raises `TidegateError` for a folder that holds no run, and to which none is being written."""
        self._place = self._from = place
        self._runs: list[Run] = []
        self._shown = 0
        self._run = 0
        """Changes when another run is written there."""
        self._written = self._early = False
        """Whether it is being written, and whether it has ended early."""
        self._before: dict[Path, Stamp] = {}
        """The records that were there when it began to be written."""
        self._begun: object = None
        try:
            self._read()
        except TidegateError:
            # It has just been put in its place.
            self._read()

    def _read(self) -> None:
        """Read the run that is being written, as far as it is; when none is any more, what has come of it."""
        records = _records(self._place)
        written = folder.being_written(self._place)
        if written is not None:
            another = written != self._from
            self._take(written)
            if another:
                self._before, self._run = records, self._run + 1
        elif self._written:
            self._take_end(records)
        else:
            self._take(self._place)
        self._written = written is not None

    def _take_end(self, records: dict[Path, Stamp]) -> None:
        """Read the run that was being written where it is now: where it was written, if its process was killed; where its record is
        a new one; nowhere, if nothing of it was done. What else is in its place is of an earlier run.
        """
        left = [self._from] if (self._from / folder.RECORD).exists() else []
        new = [path.parent for path, stamp in records.items() if stamp and stamp != self._before.get(path)]
        for place in (*left, *new):
            with suppress(TidegateError):
                self._take(place)
                return
        self._runs, self._shown, self._early = [], 0, True

    def _take(self, place: Path) -> None:
        """Read the run of a folder. The case that is shown stays: while a run is written, cases are in the order of their ends."""
        record = folder.read_record(place)
        runs = folder.complete(record)
        shown = [(one.case, one.seed) for one in self._runs[self._shown : self._shown + 1]]
        same = [number for number, one in enumerate(runs) if (one.case, one.seed) in shown]
        self._record, self._runs, self._from = record, runs, place
        self._shown = same[0] if same else 0
        self._early = bool(record.get("interrupted"))

    def begin(self, page: Page) -> None:
        """Show a case."""
        try:
            self._begin(page)
        except TidegateError:
            if not self._written:
                raise
            # The run is being put in its place; if that goes on, it is shown next time.
            with suppress(TidegateError):
                self._read()
                self._begin(page)

    def _begin(self, page: Page) -> None:
        names = [f"{run.case}, seed {run.seed}" for run in self._runs]
        backend = self._record.get("backend", "sim")
        about: dict[str, Any] = {
            "title": f"{self._record['experiment']} ({backend})",
            "kind": "finished",
            "run": self._run,
            "written": self._written,
            "early": self._early and not self._written,
            "cases": names,
            "shown": self._shown,
        }
        with_tables = folder.with_tables(self._from, self._runs[self._shown : self._shown + 1])
        self._begun = self._state()
        if not with_tables:
            page.begin(about)
            page.show({}, {})
            return
        tables = with_tables[0].tables
        flows, queues = tables["flows"], tables["queues"]
        about["flows"] = flows["label"].to_list()
        about["queues"] = [f"{q} [{n}]" if n else q for q, n in queues.select("queue", "number").rows()]
        about["nodes"], about["links"] = _topology(queues)
        found = charts(tables)
        about["charts"] = [
            {
                "title": c.title,
                "unit": c.unit,
                "names": [name for name, _ in c.series],
                "left_out": c.left_out,
            }
            for c in found
        ]
        columns: dict[str, Any] = {f"flow {name}": _numbers(flows, name) for name in FLOWS}
        columns |= {f"queue {name}": _numbers(queues, name) for name in QUEUES}
        for number, chart in enumerate(found):
            columns[f"chart {number} x"] = chart.time_s
            columns |= {f"chart {number} {at}": values for at, (_, values) in enumerate(chart.series)}
        page.begin(about)
        page.show({}, columns)

    def hear(self, page: Page, said: Mapping[str, Any]) -> None:
        """Show another case if a reader asks for one; and what is new, of a run that is being written."""
        if 0 <= said.get("case", -1) < len(self._runs):
            self._shown = said["case"]
            self.begin(page)
        elif self._written:
            # It has just been put in its place, or another one has hardly begun.
            with suppress(TidegateError):
                self._read()
            if self._state() != self._begun:
                self.begin(page)

    def _state(self) -> object:
        return self._from, self._written, self._shown, [(one.case, one.seed) for one in self._runs]


def _records(place: Path) -> dict[Path, Stamp]:
    """The records where a run goes when it ends. One that is put there is another file."""
    found: dict[Path, Stamp] = {}
    with suppress(TidegateError):
        found = {end / folder.RECORD: None for end in folder.ends(place)}
    for path in found:
        with suppress(OSError):
            about = path.stat()
            found[path] = about.st_ino, about.st_mtime_ns, about.st_size
    return found


def _numbers(frame: pl.DataFrame, name: str) -> Any:
    return (
        frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        if name in frame.columns
        else np.full(frame.height, np.nan)
    )


def _ends(name: str, known: Collection[str]) -> tuple[str, str]:
    """The nodes of a queue, by its name (`tidegate.network.links.queue_names`)."""
    source, target = name.split(" -> ", 1)
    first = re.sub(r" \(\d+\)$", "", target)
    return source, first if f"{source} -> {first}" in known else target


def _topology(queues: pl.DataFrame) -> tuple[list[list[str]], list[list[Any]]]:
    """Nodes and links by the names of queues: a node with one link is at the edge."""
    known = {name: None for name in queues["queue"].unique(maintain_order=True) if " -> " in name}
    pairs = {name: _ends(name, known) for name in known}
    links = list(
        dict.fromkeys((*sorted(pair), name[len(" -> ".join(pair)) :]) for name, pair in pairs.items())
    )
    nodes = list(dict.fromkeys(node for a, b, _ in links for node in (a, b)))
    degree = {node: sum(node in (a, b) for a, b, _ in links) for node in nodes}
    at = {node: number for number, node in enumerate(nodes)}
    shown = [[node, "host" if degree[node] == 1 else "switch"] for node in nodes]
    return shown, [[at[a], at[b], f"{a} -> {b}{which}", f"{b} -> {a}{which}"] for a, b, which in links]
