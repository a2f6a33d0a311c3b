"""Ctrl-C while an experiment runs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest

from tidegate import TidegateError
from tidegate.experiments import replot, running
from tidegate.lab.death import handled, interrupting


def test_a_signal_waits_until_a_run_is_in_its_place() -> None:
    """Also one that the kernel gives to another thread."""
    end, done = threading.Event(), []
    thread = threading.Thread(target=end.wait)
    thread.start()
    mine, handler_s = socket.socketpair()
    handler_s.setblocking(False)
    before = signal.set_wakeup_fd(handler_s.fileno())

    def end_meanwhile() -> None:
        with running._undisturbed():
            os.kill(os.getpid(), signal.SIGTERM)
            # It has come.
            mine.recv(1)
            done.append("written")
        done.append("not ended")

    try:
        with handled(interrupting(), (signal.SIGTERM,)), pytest.raises(KeyboardInterrupt):
            end_meanwhile()
    finally:
        signal.set_wakeup_fd(before)
        end.set()
        thread.join()
        mine.close()
        handler_s.close()
    assert done == ["written"]


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
