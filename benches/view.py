"""What the dashboard costs a simulation of 200 hosts and 10 000 flows: processor time of the thread that simulates, and time by the
clock, as shares of those without a page. Once with a page that nobody looks at, once with a reader that takes all it is sent.

Each run is a process of its own. The three kinds run in turns, and a ratio is that of the runs of one round; the median of the rounds is
what counts. Runs need two processors for themselves: time by the clock is that of the machine, with whatever else it does.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import Any

HOSTS, FLOWS = 200, 10_000
GOAL = 1.03
KINDS = ("alone", "page", "reader")


def simulate(kind: str, seconds: float) -> dict[str, Any]:
    """One run."""
    from tidegate.backends import common
    from tidegate.network import Network

    net = Network()
    router = net.router("r")
    hosts = [net.host(f"h{number}") for number in range(HOSTS)]
    for host in hosts:
        net.link(host, router, rate="100 Mbit/s", delay="5 ms", queue="500 packets")
    for number in range(FLOWS):
        source, target = number % (HOSTS // 2), HOSTS // 2 + number // (HOSTS // 2) % (HOSTS // 2)
        net.tcp(hosts[source], hosts[target], start=f"{number * 10} us")
    looked = [0.0]
    with ExitStack() as stack:
        reader = None
        if kind != "alone":
            from tidegate.view.page import Page
            from tidegate.view.running import Running

            class Timed(Running):
                """How long it looks."""

                def look(self, now: int) -> None:
                    began = time.thread_time()
                    super().look(now)
                    looked[0] += time.thread_time() - began

            page = stack.enter_context(Page())
            stack.enter_context(common.watching(Timed(page)))
            if kind == "reader":
                reader = subprocess.Popen(
                    [sys.executable, __file__, "--as", "browser", "--url", page.url], stdout=subprocess.PIPE
                )
                while not page.readers:
                    page.heard(0.1)
            else:
                # Its process begins.
                time.sleep(2)
        wall, thread = time.perf_counter(), time.thread_time()
        result = net.run(f"{seconds} s", seed=1, progress=False)
        took = {"wall": time.perf_counter() - wall, "thread": time.thread_time() - thread}
    if reader is not None:
        took["messages"] = int(reader.communicate()[0])
    return {**took, "looked": looked[0], "received": int(result.flows["bytes_received"].sum())}


def browse(url: str) -> int:
    """Read all that a page says; gives how many messages that was."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    count = 0
    origin = url.split("/?")[0]
    with connect(
        f"{url.replace('http', 'ws').replace('/?', '/stream?')}", origin=origin, max_size=None
    ) as one:
        try:
            while True:
                count += isinstance(one.recv(), bytes)
        except ConnectionClosed:
            return count


def main() -> None:
    """Measure, and print ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0, help="of simulated time")
    parser.add_argument("--as", dest="role", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role == "browser":
        print(browse(given.url))
        return
    if given.role is not None:
        print(json.dumps(simulate(given.role, given.seconds)))
        return
    if importlib.util.find_spec("websockets") is None:
        sys.stderr.write("the benchmark of the dashboard needs the extra view\n")
        return
    runs: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for number in range(given.rounds):
        # Who goes first has its turn, too.
        for kind in KINDS[number % 3 :] + KINDS[: number % 3]:
            command = [sys.executable, __file__, "--as", kind, "--seconds", str(given.seconds)]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            runs[kind].append(json.loads(done.stdout))
    assert len({run["received"] for of in runs.values() for run in of}) == 1, (
        "looking has changed the results"
    )
    alone = runs["alone"]
    print(
        f"{HOSTS} hosts, {FLOWS} flows, {given.seconds} s; a run takes {statistics.median(one['wall'] for one in alone):.1f} s"
    )
    for kind in KINDS[1:]:
        for what, name in (
            ("thread", "processor time of the simulating thread"),
            ("wall", "time by the clock"),
        ):
            ratios = [one[what] / base[what] for one, base in zip(runs[kind], alone, strict=True)]
            median = statistics.median(ratios)
            verdict = "holds" if median <= GOAL else "DOES NOT HOLD"
            each = " ".join(f"{ratio:.3f}" for ratio in ratios)
            print(f"{kind:7} {name:40} {median:.3f} (goal {GOAL}: {verdict}; {each})")
        shares = [one["looked"] / one["thread"] for one in runs[kind]]
        print(f"{kind:7} {'of it in looking':40} {statistics.median(shares):.2%}")
    hertz = statistics.median(one["messages"] / one["wall"] for one in runs["reader"])
    print(f"reader  messages a second: {hertz:.1f}")


if __name__ == "__main__":
    main()
