"""Runs as data files of flent (version 4 of its format, `.flent.gz`), which flent plots and combines with its own.

The file is one of flent's test `tcp_nup`: a series `TCP upload::N` for each TCP flow, in Mbit/s, with sum and average; round-trip time
and congestion window are in the raw values, where flent's plots of TCP statistics look for them. There is no ping. Samples are at
their own times in the raw values, and at equal steps in the series.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tidegate import _core
from tidegate._core import TidegateError
from tidegate.experiments import folder
from tidegate.experiments.plan import Run
from tidegate.files import replacing, why
from tidegate.report.series import Floats

FORMAT = 4
SUFFIX = ".flent.gz"
MOST_NAME = 200
TEST = "tcp_nup"
STATISTICS = {"tcp_rtt": "srtt_ms", "tcp_cwnd": "cwnd_packets"}
"""Flent's names of what a sample of a flow has besides."""


def write_flent(place: Path, out: Path) -> list[Path]:
    """Write a file for each case and seed of a run's folder into the folder `out`. Raises `TidegateError` without samples of flows."""
    record = folder.read_record(place)
    ended = datetime.fromtimestamp((place / folder.RECORD).stat().st_mtime, UTC)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TidegateError(f"{out}: cannot be made: {why(error)}; give another folder") from None
    written = []
    for run in folder.runs_of(place, record):
        data = of_run(run, str(record["experiment"]), ended.timestamp())
        if data is None:
            continue
        name = _name(f"{record['experiment']}-{run.case}-{run.seed}")
        path = out / f"{name}{SUFFIX}"
        with replacing(path) as file:
            # Without the time: the same run gives the same file.
            file.write(gzip.compress(json.dumps(data, sort_keys=True).encode(), mtime=0))
        written.append(path)
    if not written:
        raise TidegateError(f"{place}: its runs have no samples of TCP flows; record them with net.record")
    return written


def _name(full: str) -> str:
    """A name that a file can have; where that changes or cuts it, with a digest, as others may become the same.

    >>> _name("mine-one-1"), _name("mine-p<1-1")
    ('mine-one-1', 'mine-p_1-1-ed932904')
    """
    name = re.sub(r"[^A-Za-z0-9._-]", "_", full)[:MOST_NAME]
    return name if name == full else f"{name}-{hashlib.sha256(full.encode()).hexdigest()[:8]}"


def of_run(run: Run, experiment: str, ended_s: float) -> dict[str, Any] | None:
    """What flent reads, of a run that ended at that time (Unix); `None` without samples of flows."""
    samples = run.tables["flow_samples"].with_columns(
        pl.coalesce("bytes_received", "bytes_acked").alias("bytes")
    )
    times = samples["time_s"].unique().sort().to_numpy()
    if len(times) < 2:
        return None
    # Real hosts sample at times of their own; the period is a flow's.
    gaps = samples.select(pl.col("time_s").diff().over("flow"))["time_s"]
    known = gaps.drop_nulls().to_numpy()
    step = float(np.median(known)) if len(known) else 0.0
    if step <= 0:
        return None
    # Up to the first that no sample is behind, but for rounding.
    steps: Floats = np.arange(0.0, float(times[-1]) + 0.999 * step, step)
    begun = ended_s - float(times[-1])
    series: dict[str, list[float | None]] = {}
    raw: dict[str, list[dict[str, float]]] = {}
    about: dict[str, dict[str, Any]] = {}
    labels = dict(run.tables["flows"].select("flow", "label").rows())
    for number, ((flow,), part) in enumerate(samples.group_by("flow", maintain_order=True), 1):
        name = f"TCP upload::{number}"
        series[name] = _rates(part, steps)
        raw[name] = _raw(part, begun)
        about[name] = {"UNITS": "Mbits/s", "RUNNER": "tidegate", "LABEL": labels.get(flow, str(flow))}
    columns = np.array([[np.nan if v is None else v for v in values] for values in series.values()])
    there = ~np.isnan(columns)
    total, count = np.where(there, columns, 0.0).sum(axis=0), there.sum(axis=0)
    series["TCP upload sum"] = [float(t) if n else None for t, n in zip(total, count, strict=True)]
    series["TCP upload avg"] = [float(t / n) if n else None for t, n in zip(total, count, strict=True)]
    for name in ("TCP upload sum", "TCP upload avg"):
        about[name] = {"UNITS": "Mbits/s"}
    when = datetime.fromtimestamp(begun, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "version": FORMAT,
        "x_values": steps.tolist(),
        "results": series,
        "raw_values": raw,
        "metadata": {
            "NAME": TEST,
            "TITLE": f"{experiment} {run.case} seed {run.seed}",
            "NOTE": f"Tidegate {_core.__version__}",
            "TIME": when,
            "T0": when,
            "HOST": "",
            "LENGTH": float(times[-1]),
            "TOTAL_LENGTH": float(times[-1]),
            "STEP_SIZE": step,
            "TEST_PARAMETERS": {"upload_streams": str(len(raw))},
            "DATA_FILENAME": None,
            "SERIES_META": about,
        },
    }


def _rates(part: pl.DataFrame, steps: Floats) -> list[float | None]:
    """Mbit/s over the step before each time; none outside the flow's own time, whose last step may be in part beyond its end."""
    times, counts = part["time_s"].to_numpy(), part["bytes"].cast(pl.Float64).to_numpy()
    at = np.interp(steps, times, counts)
    found = np.diff(at, prepend=np.nan) / np.diff(steps, prepend=np.nan) * 8e-6
    known = (steps > times[0]) & (np.append(-np.inf, steps[:-1]) < times[-1] - 1e-9)
    return [float(v) if ok else None for v, ok in zip(found, known, strict=True)]


def _raw(part: pl.DataFrame, begun: float) -> list[dict[str, float]]:
    """Each sample at its own time, from the second on."""
    rows = []
    before: tuple[float, float] | None = None
    for time, count, *rest in part.select("time_s", "bytes", *STATISTICS.values()).rows():
        if before is not None and time > before[0] and count is not None:
            val = (count - before[1]) / (time - before[0]) * 8e-6
            more = {name: value for name, value in zip(STATISTICS, rest, strict=True) if value is not None}
            rows.append({"t": begun + time, "val": val, **more})
        if count is not None:
            before = (time, count)
    return rows
