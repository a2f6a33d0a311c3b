"""What `tidegate run --backend live --view` costs a run: goodput, and processor time of the run with all that it has started.

The run is one TCP flow through a meter (`meter.rates`). Kinds: without a page, with a page that nobody looks at, and with a reader that
takes all it is sent, whose own processor time does not count. They run in turns; a ratio is that of the runs of one round, and the median
of the rounds is what counts. Needs root and iperf3, and two processors or more for itself.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from turns import in_turns, print_ratios

HERE = Path(__file__).resolve().parent
GOAL = 1.03
PATIENCE_S = 120


def line(process: subprocess.Popen[bytes], said: Path, start: str) -> str:
    """The line that begins so, when the run has said it."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and process.poll() is None:
        for one in said.read_text().splitlines():
            if one.startswith(start):
                return one
        time.sleep(0.05)
    raise SystemExit(f"no {start!r}: {said.read_text()}")


def measure(kind: str, seconds: int, rate: int) -> dict[str, float]:
    """One run."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        out, said = Path(name) / "run", Path(name) / "said"
        words = [
            sys.executable,
            "-m",
            "tidegate.cli",
            "run",
            "meter.rates",
            "--backend",
            "live",
            "--out",
            str(out),
        ]
        for setting in (f"rates_mbps={rate}", "base_rtts_ms=0.1", "schemes=paper", f"duration_s={seconds}"):
            words += ["--set", setting]
        words += ["--view"] if kind != "alone" else []
        run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=said.open("w"))
        stack.callback(run.kill)
        if kind == "reader":
            url = line(run, said, "http://")
            reader = [sys.executable, str(HERE / "view.py"), "--as", "browser", "--url", url]
            browser = subprocess.Popen(reader, stdout=subprocess.DEVNULL)
            stack.callback(browser.wait)
            stack.callback(browser.terminate)
        if kind != "alone":
            line(run, said, "the runs are done")
            run.send_signal(signal.SIGINT)
        # With it those that it has waited for: hosts, iperf3, the page.
        _, _, used = os.wait4(run.pid, 0)
        [row] = json.loads((out / "run.json").read_text())["rows"]
        return {"goodput": row["goodput_mbps"], "processor": used.ru_utime + used.ru_stime}


def main() -> None:
    """Measure, and print ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10, help="of the flow")
    parser.add_argument("--rate", type=int, default=400, help="of the meter, in Mbit/s")
    given = parser.parse_args()
    # In the background it may be ignored, and would be by the runs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    runs = in_turns(given.rounds, lambda kind: measure(kind, given.seconds, given.rate))
    print_ratios(runs, "goodput", "Mbit/s of goodput", lambda ratio: ratio >= 1 / GOAL)
    print_ratios(runs, "processor", "s of processor", lambda ratio: ratio <= GOAL)


if __name__ == "__main__":
    main()
