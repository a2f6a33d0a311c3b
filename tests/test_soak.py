"""Long tests for a maintainer, before a release or after a change to the transport: `pytest -m soak`, about ten minutes.

Random networks run for fifteen simulated minutes: every transfer arrives whole, whatever the links do, and a seed gives one result.
The recorded digests of all experiments are compared too. One random network is part of the ordinary tests.
"""

import itertools
import random
import subprocess
import sys
from pathlib import Path

import pytest

from same_results import Digests, digest_tables, route
from tidegate.network import Network, Switch
from tidegate.results import TABLES, Result

ROOT = Path(__file__).resolve().parent.parent
ROUTER = ROOT / "examples" / "p4" / "ipv4_router" / "ipv4_router.p4"
CONTROLS = ("cubic", "reno", "bbr", "bbr3", "dctcp", "htcp", "vegas", "prague", "timely")
UNTIL = "900 s"


def random_network(seed: int) -> Network:
    """Hosts at both ends of a chain of routers and P4 routers, whose links lose, delay, reorder and duplicate."""
    chance = random.Random(seed)
    net = Network()
    chain = [
        net.switch(f"s{i}", ROUTER) if chance.random() < 0.4 else net.router(f"r{i}")
        for i in range(chance.randint(1, 4))
    ]
    pairs = [(net.host(f"a{i}"), net.host(f"b{i}")) for i in range(chance.randint(1, 5))]
    for a, b in pairs:
        for host, end in ((a, chain[0]), (b, chain[-1])):
            net.link(host, end, rate="1 Gbit/s", delay=f"{chance.randint(1, 2000)} us")
    for left, right in itertools.pairwise(chain):
        net.link(
            left,
            right,
            rate=f"{chance.choice((5, 20, 100, 400))} Mbit/s",
            delay=f"{chance.randint(1, 30)} ms",
            queue=f"{chance.choice((20, 100, 1000))} packets",
            loss=chance.choice((0.0, 0.0, 0.001, 0.01)),
            jitter=f"{chance.choice((0, 0, 500))} us",
            reorder=chance.choice((0.0, 0.0, 0.01)),
            reorder_by="3 ms",
            duplicate=chance.choice((0.0, 0.0, 0.01)),
        )
    for node in chain:
        if isinstance(node, Switch):
            route(net, node)
    for _ in range(chance.randint(1, 12)):
        ends = chance.choice(pairs)
        control = chance.choice(CONTROLS)
        net.tcp(
            *(ends if chance.random() < 0.5 else ends[::-1]),
            congestion_control=control,
            ecn="accurate" if control == "prague" else chance.choice(("on", "off", "passive")),
            size=f"{chance.choice((1, 20, 300, 4000, 40_000))} kB",
            start=f"{chance.randint(0, 20_000)} ms",
            sack=control == "prague" or chance.random() < 0.8,
            timestamps=chance.random() < 0.8,
        )
    if chance.random() < 0.5:
        net.udp(*pairs[0], rate="1 Mbit/s", payload=500, pattern="poisson", stop="60 s")
    return net


def digests(result: Result) -> Digests:
    found: Digests = {}
    digest_tables(found, "random", [{table: getattr(result, table) for table in TABLES}])
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 301))])
def test_transfers_arrive_whole_and_a_seed_gives_one_result(seed: int) -> None:
    result = random_network(seed).run(UNTIL, seed=seed)
    sized = [row for row in result.flows.iter_rows(named=True) if row["size_bytes"] is not None]
    unfinished = [
        (row["flow"], row["label"], row["bytes_received"], row["size_bytes"])
        for row in sized
        if row["completion_ms"] is None or row["bytes_received"] != row["size_bytes"]
    ]
    assert sized
    assert unfinished == []
    assert digests(random_network(seed).run(UNTIL, seed=seed)) == digests(result)


@pytest.mark.soak
def test_no_recorded_result_has_moved() -> None:
    words = [sys.executable, str(ROOT / "tests" / "same_results.py"), "--full"]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
