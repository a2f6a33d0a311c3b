"""A finished run in the dashboard: its cases and seeds, each with its time series, flows and queues."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tidegate.experiments import folder
from tidegate.report.series import charts
from tidegate.view.frames import pack

FLOWS = ("start_s", "finish_s", "goodput_mbps", "retransmits", "timeouts", "completion_ms")
QUEUES = ("packets", "dropped", "marked", "queue_delay_ms_mean", "queue_delay_ms_p99", "utilisation")


class Finished:
    """A run's folder. Raises `TidegateError` for one that holds no run."""

    def __init__(self, place: Path) -> None:
        self._record = folder.read_record(place)
        self._runs = folder.runs_of(place, self._record)
        self._lock = threading.Lock()
        self._shown = 0
        self._made: tuple[int, dict[str, Any], bytes | None] | None = None
        self._make()

    def _make(self) -> None:
        names = [f"{run.case}, seed {run.seed}" for run in self._runs]
        about: dict[str, Any] = {
            "title": f"{self._record['experiment']} ({self._record.get('backend', 'sim')})",
            "kind": "finished",
            "cases": names,
            "shown": self._shown,
        }
        if not self._runs:
            self._made = (0, about, None)
            return
        tables = self._runs[self._shown].tables
        flows, queues = tables["flows"], tables["queues"]
        about["flows"] = flows["label"].to_list()
        about["queues"] = [f"{q} [{n}]" if n else q for q, n in queues.select("queue", "number").rows()]
        about["ends"] = [
            list(pair) for pair in flows.select("source", "target").unique(maintain_order=True).rows()
        ]
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
        self._made = (self._shown, about, pack({"kind": "finished"}, columns))

    def about(self) -> tuple[int, dict[str, Any]]:
        """What is shown."""
        with self._lock:
            assert self._made is not None
            return self._made[0], self._made[1]

    def frame(self) -> tuple[int, bytes | None]:
        """All of it."""
        with self._lock:
            assert self._made is not None
            return self._made[0], self._made[2]

    def command(self, said: dict[str, Any]) -> None:
        """Show another case."""
        number = said["case"]
        if type(number) is not int or not 0 <= number < len(self._runs):
            raise ValueError(number)
        with self._lock:
            self._shown = number
            self._make()


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
