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


def took(*commands: list[str], runs: int = 9) -> list[float]:
    """The least of a number of runs of each command, in seconds. They run in turns, so that what else the machine does hits all."""
    least = [float("inf")] * len(commands)
    for _ in range(runs):
        for at, command in enumerate(commands):
            begin = time.monotonic()
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            least[at] = min(least[at], time.monotonic() - begin)
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
            f"about {packets:,} packets or more; start of the command {start:.2f} s; largest process {megabytes:.0f} MiB"
        )
        for rule, least in rules.items():
            print(f"tidegate monitor --rtt-rule {rule:10}  {least:8.3f} s  {packets / least / 1e6:6.2f} Mpps")
        for tool, goal in GOALS.items():
            if tool not in theirs:
                print(f"{tool} is not here")
                continue
            ratio = theirs[tool] / rules[tool]
            print(f"{tool:35}  {theirs[tool]:8.3f} s  {ratio:6.1f} x   (at least {goal:g} x)")


if __name__ == "__main__":
    main()
