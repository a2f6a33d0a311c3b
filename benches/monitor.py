"""How fast `tidegate monitor` reads a capture, beside tshark and tcptrace. Times are of whole processes, in turns, the least and the
median of each: of nine runs, of two for tshark.

The start of Python and its packages is measured with an empty capture, and taken off: the least of the least, the median of the median.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from tidegate.network import Network

GOALS = {"tshark": 50.0, "tcptrace": 5.0}


def capture(path: Path, seconds: float) -> None:
    """A hundred connections through a queue of 1 Gbit/s, with drops and losses."""
    net = Network()
    a, b, router = net.host("a"), net.host("b"), net.router("r")
    first = net.link(a, router, rate="10 Gbit/s", delay="1 ms")
    net.capture(first, router, path, snap="96 B")
    net.link(router, b, rate="1 Gbit/s", delay="9 ms", queue="500 packets", loss=0.0001)
    for number in range(100):
        net.tcp(a, b, start=f"{number} ms", ecn="accurate" if number % 2 else "passive")
    net.run(f"{seconds} s", seed=1)


@dataclass(frozen=True)
class Took:
    """Seconds: by the clock, and of processor time."""

    wall: float
    cpu: float

    def __sub__(self, other: Took) -> Took:
        return Took(self.wall - other.wall, self.cpu - other.cpu)


@dataclass(frozen=True)
class Turns:
    """Of a number of runs the least times, and the medians."""

    least: Took
    median: Took

    @classmethod
    def of(cls, runs: Sequence[Took]) -> Turns:
        """Times of the clock and of the processor each for themselves."""

        def each(figure: Callable[[list[float]], float]) -> Took:
            return Took(figure([run.wall for run in runs]), figure([run.cpu for run in runs]))

        return cls(each(min), each(statistics.median))

    def __sub__(self, other: Turns) -> Turns:
        return Turns(self.least - other.least, self.median - other.median)


Kind = Callable[[Took], float]
WALL: Kind = attrgetter("wall")
CPU: Kind = attrgetter("cpu")


def processor_s() -> float:
    """Processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def took(*commands: list[str], turns: int) -> list[Turns]:
    """A number of runs of each command. They run in turns, so that what else the machine does hits all."""
    runs: list[list[Took]] = [[] for _ in commands]
    for _ in range(turns):
        for command, so_far in zip(commands, runs, strict=True):
            begin, before = time.monotonic(), processor_s()
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            so_far.append(Took(time.monotonic() - begin, processor_s() - before))
    return [Turns.of(each) for each in runs]


def main() -> None:
    """Measure, and print ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="of simulated traffic; 8 make over a million packets"
    )
    parser.add_argument("--turns", type=int, default=9, help="runs of each, but of tshark, which has two")
    options = parser.parse_args()
    if options.turns < 1:
        parser.error("--turns is 1 or more")
    with tempfile.TemporaryDirectory() as folder:
        path, empty = Path(folder) / "big.pcap", Path(folder) / "empty.pcap"
        capture(path, options.seconds)
        empty.write_bytes(path.read_bytes()[:24])
        ours = [sys.executable, "-m", "tidegate.cli", "monitor", "--json"]
        names = ("exact", "tshark", "tcptrace", "timestamps")
        commands = [[*ours, "--rtt-rule", rule, str(path)] for rule in names]
        tcptrace = ["tcptrace", "-r", "-l", "-n"]
        if shutil.which("tcptrace"):
            commands += [[*tcptrace, str(path)], [*tcptrace, str(empty)]]
        took(commands[0], turns=1)
        megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        start, *times = took([*ours, str(empty)], *commands, turns=options.turns)
        rules = {rule: turns - start for rule, turns in zip(names, times, strict=False)}
        theirs = {}
        if shutil.which("tcptrace"):
            theirs["tcptrace"] = times[-2] - times[-1]
        if shutil.which("tshark"):
            read = ["tshark", "-r", str(path), "-T", "fields", "-e", "tcp.analysis.ack_rtt"]
            whole, none = took(read, ["tshark", "-r", str(empty)], turns=2)
            theirs["tshark"] = whole - none
        packets = (path.stat().st_size - 24) // 112
        print(
            f"about {packets:,} packets or more; start of the command {start.least.wall:.2f} s; largest process {megabytes:.0f} MiB; "
            "times by the clock, and of the processor: the least, and in brackets the median"
        )
        for rule, own in rules.items():
            print(
                f"tidegate monitor --rtt-rule {rule:10}  {shown(own, WALL)} s  {packets / own.least.wall / 1e6:6.2f} Mpps"
                f"  {shown(own, CPU)} s"
            )
        for tool, goal in GOALS.items():
            if tool not in theirs:
                print(f"{tool} is not here")
                continue
            other, own = theirs[tool], rules[tool]
            print(
                f"{tool:35}  {shown(other, WALL)} s  {times_as_long(other, own, WALL)}     {shown(other, CPU)} s"
                f"  {times_as_long(other, own, CPU)}   (at least {goal:g} x)"
            )


def shown(turns: Turns, kind: Kind) -> str:
    """`0.029 (0.031)`."""
    return f"{kind(turns.least):8.3f} ({kind(turns.median):.3f})"


def times_as_long(other: Turns, own: Turns, kind: Kind) -> str:
    """`6.5 (6.1) x`."""
    least, median = kind(other.least) / kind(own.least), kind(other.median) / kind(own.median)
    return f"{least:6.1f} ({median:.1f}) x"


if __name__ == "__main__":
    main()
