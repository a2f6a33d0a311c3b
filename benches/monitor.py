"""How fast `tidegate monitor` reads a capture, beside tshark and tcptrace. Times are of whole processes, the least of three runs.

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


def took(command: list[str]) -> float:
    """The least of three runs, in seconds."""
    found = []
    for _ in range(3):
        begin = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        found.append(time.monotonic() - begin)
    return min(found)


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
        start = took([*ours, str(empty)])
        rules = {}
        for rule in ("exact", "tshark", "tcptrace", "timestamps"):
            rules[rule] = took([*ours, "--rtt-rule", rule, str(path)]) - start
        packets = (path.stat().st_size - 24) // 112
        megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(
            f"about {packets:,} packets or more; start of the command {start:.2f} s; largest process {megabytes:.0f} MiB"
        )
        for rule, least in rules.items():
            print(f"tidegate monitor --rtt-rule {rule:10}  {least:8.3f} s  {packets / least / 1e6:6.2f} Mpps")
        for tool, command, rule in (
            ("tshark", ["tshark", "-r", str(path), "-T", "fields", "-e", "tcp.analysis.ack_rtt"], "tshark"),
            ("tcptrace", ["tcptrace", "-r", "-l", "-n", str(path)], "tcptrace"),
        ):
            if shutil.which(tool) is None:
                print(f"{tool} is not here")
                continue
            theirs = took(command) - took(
                [*command[:-1], str(empty)] if tool == "tcptrace" else [tool, "-r", str(empty)]
            )
            print(f"{tool:35}  {theirs:8.3f} s  {theirs / rules[rule]:6.1f} x   (at least {GOALS[tool]:g} x)")


if __name__ == "__main__":
    main()
