"""How fast `tidegate monitor` reads a capture, beside tshark and tcptrace. Times are of whole processes, in turns, the least of each:
of nine runs, of two for tshark.

The start of Python and its packages is measured with an empty capture, and taken off.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
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

    wall: float = float("inf")
    cpu: float = float("inf")

    def __sub__(self, other: Took) -> Took:
        return Took(self.wall - other.wall, self.cpu - other.cpu)


def processor_s() -> float:
    """Processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def took(*commands: list[str], runs: int = 9) -> list[Took]:
    """The least of a number of runs of each command. They run in turns, so that what else the machine does hits all."""
    least = [Took()] * len(commands)
    for _ in range(runs):
        for at, command in enumerate(commands):
            begin, before = time.monotonic(), processor_s()
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            wall, cpu = time.monotonic() - begin, processor_s() - before
            least[at] = Took(min(least[at].wall, wall), min(least[at].cpu, cpu))
    return least


def main() -> None:
    """Measure, and print ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="of simulated traffic; 8 make over a million packets"
    )
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        path, empty = Path(folder) / "big.pcap", Path(folder) / "empty.pcap"
        capture(path, seconds)
        empty.write_bytes(path.read_bytes()[:24])
        ours = [sys.executable, "-m", "tidegate.cli", "monitor", "--json"]
        names = ("exact", "tshark", "tcptrace", "timestamps")
        commands = [[*ours, "--rtt-rule", rule, str(path)] for rule in names]
        tcptrace = ["tcptrace", "-r", "-l", "-n"]
        if shutil.which("tcptrace"):
            commands += [[*tcptrace, str(path)], [*tcptrace, str(empty)]]
        took(commands[0], runs=1)
        megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        start, *times = took([*ours, str(empty)], *commands)
        rules = {rule: least - start for rule, least in zip(names, times, strict=False)}
        theirs = {}
        if shutil.which("tcptrace"):
            theirs["tcptrace"] = times[-2] - times[-1]
        if shutil.which("tshark"):
            read = ["tshark", "-r", str(path), "-T", "fields", "-e", "tcp.analysis.ack_rtt"]
            whole, none = took(read, ["tshark", "-r", str(empty)], runs=2)
            theirs["tshark"] = whole - none
        packets = (path.stat().st_size - 24) // 112
        print(
            f"about {packets:,} packets or more; start of the command {start.wall:.2f} s; largest process {megabytes:.0f} MiB; "
            "times by the clock, and of the processor"
        )
        for rule, least in rules.items():
            print(
                f"tidegate monitor --rtt-rule {rule:10}  {least.wall:8.3f} s  {packets / least.wall / 1e6:6.2f} Mpps"
                f"  {least.cpu:8.3f} s"
            )
        for tool, goal in GOALS.items():
            if tool not in theirs:
                print(f"{tool} is not here")
                continue
            other, own = theirs[tool], rules[tool]
            print(
                f"{tool:35}  {other.wall:8.3f} s  {other.wall / own.wall:6.1f} x     {other.cpu:8.3f} s  {other.cpu / own.cpu:6.1f} x"
                f"   (at least {goal:g} x)"
            )


if __name__ == "__main__":
    main()
