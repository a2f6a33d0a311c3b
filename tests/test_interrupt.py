"""Ctrl-C while an experiment runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from tidegate import TidegateError
from tidegate.experiments import replot


@pytest.mark.slow
@pytest.mark.parametrize("flows", ["1", "1,2,3"])
def test_an_interrupt_leaves_the_tables_up_to_then(flows: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    settings = ["--set", "duration_s=100000", "--set", f"flows={flows}", "--out", str(out)]
    command = [sys.executable, "-m", "tidegate.cli", "run", "reference.dumbbell", *settings]
    # A shell may start background jobs with the signal ignored.
    restore = "import signal, runpy, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    restore += "sys.argv = sys.argv[1:]; runpy.run_module('tidegate.cli', run_name='__main__')"
    tables = out / "tables" / "n1-1" / "flow_samples.parquet"
    for after_s in (1, 10, 60):
        process = subprocess.Popen(
            [sys.executable, "-c", restore, *command[2:]], stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        # How much there is to do is said when it begins.
        begun = process.stderr.readline()
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        errors = begun + process.communicate(timeout=60)[1]
        assert process.returncode == 130
        # On a slow machine it may not have come to the first sample.
        if tables.exists() and pl.read_parquet(tables).height:
            break
    # Before it stands how long the run will take.
    *before, last = errors.splitlines()
    assert last.startswith("interrupted with 0 of")
    assert str(out) in last
    assert all(line.startswith("reference.dumbbell: ") for line in before)
    about = json.loads((out / "run.json").read_text())
    assert about["interrupted"] is True
    assert about["rows"] == about["claims"] == []
    samples = pl.read_parquet(tables)
    assert 0 < samples["time_s"].max() < 100_000  # type: ignore[operator]
    with pytest.raises(TidegateError, match="holds a run that was interrupted"):
        replot(out)
