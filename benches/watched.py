"""Traffic with and without `tidegate monitor -i` at its receiver, in turns: `python benches/watched.py [--seconds S] [--rounds N]`.

Two namespaces with a host each, a veth pair between them, MTU 1500, offloads off: TCP at 1 Gbit/s with segments of 1000 bytes, TCP as
fast as it goes, and round trips under 1 Gbit/s of UDP (`live.py`, beside this file). Of the monitor: the share of a processor that it
takes, and how many packets it missed at most. Prints the median of the rounds and the median of the ratios. Needs root, iperf3 and ethtool.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import live

RATE_MBPS = 1000
SEGMENT = 1000


def at_rate(seconds: float) -> live.Numbers:
    """One CUBIC flow at 1 Gbit/s."""
    end = live.iperf(seconds, "-C", "cubic", "-b", f"{RATE_MBPS}M", "-M", str(SEGMENT))
    return {
        "tcp_mbps": end["sum_received"]["bits_per_second"] / 1e6,
        "tcp_retransmits": end["sum_sent"]["retransmits"],
    }


def is_watched() -> bool:
    """Whether a packet socket of this thread's namespace is bound to an interface."""
    _, *sockets = (line.split() for line in Path("/proc/thread-self/net/packet").read_text().splitlines())
    return any(one[4] != "0" and one[5] == "1" for one in sockets)


def processor_s(pid: int) -> float:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watched(act: Callable[[], live.Numbers]) -> live.Numbers:
    """What comes of an act with a monitor at host b."""
    command = live.command(1, sys.executable, "-m", "tidegate.cli", "monitor", "-i", "e0", "--json")
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, text=True) as monitor:
        try:
            while not live.within(live.NAMES[1], is_watched):
                if monitor.poll() is not None:
                    raise SystemExit("the monitor has ended before there was traffic")
                time.sleep(0.05)
            began, before = time.monotonic(), processor_s(monitor.pid)
            numbers = act()
            share = (processor_s(monitor.pid) - before) / (time.monotonic() - began)
            monitor.send_signal(signal.SIGINT)
            seen = json.loads(monitor.communicate()[0])
        finally:
            monitor.kill()
    return numbers | {"monitor_core": share, "packets": seen["packets"], "missed": seen["dropped_packets"]}


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seconds", type=float, default=4.0, help="of each flow")
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    if given.seconds < 1 or given.rounds < 1:
        options.error("--seconds and --rounds are 1 or more")
    if os.geteuid() != 0:
        raise SystemExit("benches/watched.py needs root: it makes network namespaces")
    acts: dict[str, Callable[[], live.Numbers]] = {
        f"TCP at {RATE_MBPS} Mbit/s": lambda: at_rate(given.seconds),
        "TCP": lambda: live.tcp(given.seconds),
        f"echoes under {live.LOAD_MBPS} Mbit/s of UDP": lambda: live.loaded_echo(int(given.seconds * 250)),
    }
    runs: dict[str, list[tuple[live.Numbers, live.Numbers]]] = {name: [] for name in acts}
    for turn in range(given.rounds):
        for name, act in acts.items():
            # Each is the first in half of the turns.
            both = act, partial(watched, act)
            found = {}
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                with live.direct():
                    found[which] = both[which]()
            runs[name].append((found[0], found[1]))
    for name, pairs in runs.items():
        print(name)
        for key in pairs[0][1]:
            with_it = (max if key == "missed" else median)(there[key] for _, there in pairs)
            if key not in pairs[0][0]:
                print(f"  {key:22}            with {with_it:10.4g}")
                continue
            without = median(bare[key] for bare, _ in pairs)
            ratios = [there[key] / bare[key] for bare, there in pairs if bare[key]]
            ratio = f"   ratio {median(ratios):.3f}" if ratios else ""
            print(f"  {key:22} {without:10.4g} with {with_it:10.4g}{ratio}")


if __name__ == "__main__":
    main()
