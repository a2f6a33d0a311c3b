"""A run's folder in the dashboard: cases and seeds, each with its time series, flows and queues; of a run that is being written, those
that are done.
"""

from __future__ import annotations

from collections.abc import Mapping
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


class Finished:
    """Shows a run's folder."""

    def __init__(self, place: Path) -> None:
        """Raises `TidegateError` for a folder that holds no run, and to which none is being written."""
        self._place = place
        self._shown = 0
        self._read()

    def _read(self) -> None:
        written = folder.being_written(self._place)
        try:
            record = folder.read_record(written or self._place)
            runs = folder.complete(record)
        except TidegateError:
            # It has just been put in its place; or it has hardly begun.
            if written is None:
                raise
            written = folder.being_written(self._place)
            record = folder.read_record(written or self._place)
            runs = folder.complete(record)
        self._record, self._runs, self._from = record, runs, written or self._place
        self._written = written is not None

    def begin(self, page: Page) -> None:
        """Show a case."""
        try:
            self._begin(page)
        except TidegateError:
            if not self._written:
                raise
            # The run has just been put in its place, where runs have another order.
            was = self._runs[self._shown]
            self._read()
            same = [n for n, one in enumerate(self._runs) if (one.case, one.seed) == (was.case, was.seed)]
            self._shown = same[0] if same else 0
            self._begin(page)

    def _begin(self, page: Page) -> None:
        names = [f"{run.case}, seed {run.seed}" for run in self._runs]
        backend = self._record.get("backend", "sim")
        about: dict[str, Any] = {
            "title": f"{self._record['experiment']} ({backend})",
            "kind": "finished",
            "written": self._written,
            "cases": names,
            "shown": self._shown,
        }
        if not self._runs:
            page.begin(about)
            page.show({}, {})
            return
        tables = folder.with_tables(self._from, [self._runs[self._shown]])[0].tables
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
            before: tuple[Path, list[Run]] = (self._from, self._runs)
            try:
                self._read()
            except TidegateError:
                # Its process has been killed. What it had done is there.
                self._written = False
            if not self._written or (self._from, self._runs) != before:
                self._shown = min(self._shown, max(0, len(self._runs) - 1))
                self.begin(page)


def _numbers(frame: pl.DataFrame, name: str) -> Any:
    return (
        frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        if name in frame.columns
        else np.full(frame.height, np.nan)
    )


def _topology(queues: pl.DataFrame) -> tuple[list[list[str]], list[list[Any]]]:
    """Nodes and links by the names of queues: a node with one link is at the edge."""
    pairs = [
        tuple(name.split(" -> ", 1)) for name in queues["queue"].unique(maintain_order=True) if " -> " in name
    ]
    links = list(dict.fromkeys(tuple(sorted(pair)) for pair in pairs))
    nodes = list(dict.fromkeys(node for link in links for node in link))
    degree = {node: sum(node in link for link in links) for node in nodes}
    at = {node: number for number, node in enumerate(nodes)}
    shown = [[node, "host" if degree[node] == 1 else "switch"] for node in nodes]
    return shown, [[at[a], at[b], f"{a} -> {b}", f"{b} -> {a}"] for a, b in links]
