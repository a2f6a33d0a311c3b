"""Seconds of each experiment's `--quick`, and whether it ends in a minute on two processors, as docs/commands.md says.

    python tests/quick_times.py                 all experiments, some minutes to half an hour
    python tests/quick_times.py --only meter    those whose name holds this

A run is bound to two processors. It ends in time if it took less than a minute, or less than a minute of processor time in all; it
cannot if it needs more than two minutes of processor time, or more than a minute while it has one processor to itself: then the
processor time is that of the clock. Between the two, other work on the machine may have been in its way: `slow here`.
Exit status 1: an experiment that cannot. Before a release, beside `same_results.py --full`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from tidegate import experiments

LIMIT_S = 60
PROCESSORS = 2
ALONE = 0.1
"""So near is the processor time of one process, with nothing else to do, to the clock's."""


class Took(NamedTuple):
    """Seconds of one run: by the clock, and of all its processes' processor time."""

    clock_s: float
    processor_s: float

    @property
    def verdict(self) -> str:
        """Whether a machine with nothing else to do ends it in time."""
        if min(self.clock_s, self.processor_s) < LIMIT_S:
            return "in time"
        alone = abs(self.processor_s - self.clock_s) <= ALONE * self.clock_s
        return "too long" if alone or self.processor_s > PROCESSORS * LIMIT_S else "slow here"


def measure(name: str) -> Took:
    """Run an experiment as a user does."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "tidegate.cli", "run", name, "--quick", "--out", f"{place}/run"]
        before, began = os.times(), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = os.times()
    used = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    return Took(time.perf_counter() - began, used)


def main(words: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="experiments whose name holds this")
    asked = parser.parse_args(words)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    too_long = []
    for name in experiments.all_experiments():
        if asked.only not in name:
            continue
        took = measure(name)
        print(
            f"{name}: {took.clock_s:.0f} s, {took.processor_s:.0f} s of processor time, {took.verdict}",
            flush=True,
        )
        if took.verdict == "too long":
            too_long.append(name)
    if too_long:
        print(f"not in a minute on two processors: {', '.join(too_long)}", file=sys.stderr)
    return int(bool(too_long))


if __name__ == "__main__":
    sys.exit(main())
