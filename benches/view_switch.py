"""What `tidegate switch --view` costs: processor time of the switch without traffic, throughput of a TCP flow through it, and
processor time a Gbit.

Three namespaces with veths, a learning switch, and iperf3. Kinds: without a page, with a page that nobody looks at, and with a reader
that takes all it is sent. They run in turns; a ratio is that of the runs of one round, and the median of the rounds is what counts.
Needs root and iperf3, and two processors or more for itself: the hosts, the switch and the page share them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from turns import KINDS, in_turns, print_ratios
from watched import processor_s

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parent / "examples/p4/learning_switch/learning_switch.p4"
FLOOD = "mc_mgrp_create 1\nmc_node_create 0 1 2\nmc_node_associate 1 0\n"
GOAL = 0.97


def run(*words: str) -> None:
    """Run a command that has to succeed."""
    subprocess.run(words, check=True)


@contextmanager
def network() -> Iterator[list[str]]:
    """Namespaces of two hosts and of a switch between them."""
    names = [f"tgv{os.getpid()}{which}" for which in ("a", "s", "b")]
    with ExitStack() as stack:
        for name in names:
            run("ip", "netns", "add", name)
            stack.callback(run, "ip", "netns", "delete", name)
        for number, host in enumerate((names[0], names[2]), 1):
            run(
                "ip",
                "link",
                "add",
                "e0",
                "netns",
                host,
                "type",
                "veth",
                "peer",
                "name",
                f"s{number}",
                "netns",
                names[1],
            )
            run("ip", "-n", names[1], "link", "set", f"s{number}", "up")
            run("ip", "-n", host, "addr", "add", f"10.0.0.{number}/24", "dev", "e0")
            run("ip", "-n", host, "link", "set", "e0", "up")
        yield names


def line(said: Path, start: str) -> str:
    """The line that begins so, when the switch has said it."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for one in said.read_text().splitlines():
            if one.startswith(start):
                return one
        time.sleep(0.05)
    raise SystemExit(f"no {start!r}: {said.read_text()}")


def measure(kind: str, seconds: float, rate: str) -> dict[str, float]:
    """One flow."""
    with network() as (one, box, other), tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        flood, said = Path(name) / "flood.txt", Path(name) / "said"
        flood.write_text(FLOOD)
        inside = ("ip", "netns", "exec")
        words = [sys.executable, "-m", "tidegate.cli", "switch", str(PROGRAM), "-i", "1@s1", "-i", "2@s2"]
        words += ["--commands", str(flood), *(["--view"] if kind != "alone" else [])]
        run(*inside, box, "ip", "link", "set", "lo", "up")
        switch = subprocess.Popen([*inside, box, *words], stderr=said.open("w"))
        stack.callback(switch.wait)
        stack.callback(switch.terminate)
        line(said, "running")
        if kind != "alone":
            url = line(said, "dashboard at ").removeprefix("dashboard at ")
        if kind == "reader":
            reader = [*inside, box, sys.executable, str(HERE / "view.py"), "--as", "browser", "--url", url]
            browser = subprocess.Popen(reader, stdout=subprocess.DEVNULL)
            stack.callback(browser.wait)
            stack.callback(browser.terminate)
        server = subprocess.Popen([*inside, other, "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
        stack.callback(server.wait)
        stack.callback(server.terminate)
        time.sleep(2)
        idle = processor_s(switch.pid)
        time.sleep(seconds)
        before = processor_s(switch.pid)
        client = [*inside, one, "iperf3", "-c", "10.0.0.2", "-t", str(seconds), "-b", rate, "-J"]
        done = subprocess.run(client, stdout=subprocess.PIPE, check=True)
        received = json.loads(done.stdout)["end"]["sum_received"]
        return {
            "gbps": received["bits_per_second"] / 1e9,
            "idle": (before - idle) * 1e3 / seconds,
            "processor": (processor_s(switch.pid) - before) / (received["bytes"] * 8 / 1e9),
        }


def main() -> None:
    """Measure, and print ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rate", default="0", help="of the flow, as 1G; 0: as fast as it goes")
    given = parser.parse_args()
    runs = in_turns(given.rounds, lambda kind: measure(kind, given.seconds, given.rate))
    print_ratios(runs, "gbps", "Gbit/s", lambda ratio: ratio >= GOAL)
    print_ratios(runs, "processor", "s of processor a Gbit", lambda ratio: ratio <= 1 / GOAL)
    for kind in KINDS:
        print(
            f"{kind:7} {statistics.median(one['idle'] for one in runs[kind]):.1f} ms of processor a second without traffic"
        )


if __name__ == "__main__":
    main()
