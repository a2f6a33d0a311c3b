"""Shows that no recorded result has moved: runs networks, experiments and examples, and compares digests to the bit.

    python tests/same_results.py                 six small networks, about ten seconds; part of the tests
    python tests/same_results.py --full          also every experiment's --quick and the examples; about an hour
    python tests/same_results.py --full --record keeps what it finds as what is right from now on
    python tests/same_results.py --threads 2     on two threads, where that is possible

A digest stands for one column of one table (of all cases and seeds of an experiment, in order), for the data that a figure draws,
for the numbers and verdicts of the claims, or for the packets of a capture. Prose is left out: labels and wording may change.
The digests hold for x86-64 with glibc: what `cbrt` or `log` give in the last bit is the C library's affair.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tidegate import experiments
from tidegate.network import Network, Switch
from tidegate.results import TABLES, Result
from tidegate.topologies import dumbbell

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "p4"
RECORDED = Path(__file__).with_suffix(".json")
ROUTER = EXAMPLES / "ipv4_router" / "ipv4_router.p4"
SEEDS = (1, 2)

NOTE_DIGITS = 9
"""Of the values that controllers note. The meter's come from NumPy's logarithm, which takes other instructions where the processor has
AVX-512, with another last bit. What a controller writes to its switch is whole numbers, so no other table depends on it."""

Digests = dict[str, str]


class Hash:
    """A digest in the making."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def bytes(self, data: bytes) -> None:
        """Take bytes, with their length, so that two runs of them are not one."""
        self._sha.update(len(data).to_bytes(8, "little"))
        self._sha.update(data)

    def value(self, value: object) -> None:
        """Take what JSON has, floats by their bits."""
        if isinstance(value, float):
            self.bytes(b"f" + np.float64(value).tobytes())
        elif isinstance(value, list | tuple):
            self.bytes(f"l{len(value)}".encode())
            for item in value:
                self.value(item)
        else:
            self.bytes(repr(value).encode())

    def column(self, column: pl.Series) -> None:
        """Take a column: type, which are null, and values."""
        self.bytes(str(column.dtype).encode())
        if column.dtype == pl.String:
            self.value(column.to_list())
            return
        self.bytes(column.is_null().to_numpy().tobytes())
        self.bytes(column.fill_null(0).to_numpy().tobytes())

    @property
    def digest(self) -> str:
        """Enough of it to tell."""
        return self._sha.hexdigest()[:16]


def digest_tables(into: Digests, name: str, tables: list[dict[str, pl.DataFrame]]) -> None:
    """A digest for each column of each table, over all runs."""
    for table in tables[0]:
        if all(run[table].is_empty() for run in tables):
            continue
        for column in tables[0][table].columns:
            found = Hash()
            for run in tables:
                values = run[table][column]
                found.column(
                    values.round_sig_figs(NOTE_DIGITS) if (table, column) == ("notes", "value") else values
                )
            into[f"{name}/{table}/{column}"] = found.digest


def digest_of(value: object) -> str:
    """A digest of one value."""
    found = Hash()
    found.value(value)
    return found.digest


# Six small networks: what each part of the simulator has a share in.


def route(net: Network, switch: Switch) -> None:
    """Entries of the example's router for all hosts."""
    for host, ports in net.ways(switch).items():
        values = f"{ports[0]} 02:00:00:00:ff:00 {net.mac(host)}"
        switch.commands.append(f"table_add routes next_hop {net.address(host)}/32 => {values}")


def plain(folder: Path) -> Network:
    """Routers, every kind of congestion control, UDP, a link that changes."""
    net = Network()
    names = ["cubic", "reno", "bbr", "bbr3", "dctcp", "htcp", "vegas", "prague", "timely"]
    bell = dumbbell(
        net,
        len(names) + 1,
        bottleneck={"rate": "200 Mbit/s", "delay": "4 ms", "queue": "300 packets", "mark_above": 200},
    )
    for (a, b), name in zip(bell.pairs, names, strict=False):
        net.tcp(a, b, congestion_control=name, ecn="on", start=f"{bell.pairs.index((a, b)) * 7} ms")
    net.udp(*bell.pairs[-1], rate="20 Mbit/s", payload=700, pattern="poisson", start="100 ms")
    bell.bottleneck.set("1 s", rate="100 Mbit/s")
    net.record("10 ms", queues=[bell.bottleneck])
    return net


def p4_queue(folder: Path) -> Network:
    """P4 switches with two queues a port, a shaper and a scheduler; datagrams over them."""
    from tidegate.control import Port, Queue, Shaper

    net = Network()
    left, right = (net.switch(name, ROUTER, queues=2) for name in ("left", "right"))
    pairs = [(net.host(f"a{i}"), net.host(f"b{i}")) for i in range(3)]
    for a, b in pairs:
        net.link(a, left, rate="1 Gbit/s", delay="1 ms")
        net.link(b, right, rate="1 Gbit/s", delay="1 ms")
    bottleneck = net.link(left, right, rate="100 Mbit/s", delay="3 ms", queue="200 packets")
    for switch in (left, right):
        route(net, switch)
    scheduler = Port(
        (Queue(packets=100), Queue(packets=100, weight=3)),
        scheduler="deficit round robin",
        shaper=Shaper("90 Mbit/s", "3000 B"),
    )
    net.configure(left, bottleneck, scheduler)
    net.tcp(*pairs[0], congestion_control="cubic")
    net.tcp(*pairs[1], congestion_control="reno", start="50 ms", size="2 MB")
    net.udp(*pairs[2], rate="5 Mbit/s", payload=300)
    net.record("10 ms", queues=[bottleneck])
    return net


def managed(folder: Path) -> Network:
    """Queues under CoDel and PIE."""
    net = Network()
    routers = [net.router(f"r{i}") for i in range(3)]
    hosts = [net.host(f"h{i}") for i in range(4)]
    for host, router in zip(hosts, (routers[0], routers[0], routers[2], routers[2]), strict=True):
        net.link(host, router, rate="1 Gbit/s", delay="500 us")
    first = net.link(routers[0], routers[1], rate="50 Mbit/s", delay="5 ms", queue="500 packets", aqm="codel")
    second = net.link(routers[1], routers[2], rate="45 Mbit/s", delay="5 ms", queue="500 packets", aqm="pie")
    net.tcp(hosts[0], hosts[2], congestion_control="cubic")
    net.tcp(hosts[1], hosts[3], congestion_control="reno", ecn="on", sack=False)
    net.record("10 ms", queues=[first, second])
    return net


def pages(folder: Path) -> Network:
    """Clients that ask servers, beside a long flow."""
    net = Network()
    bell = dumbbell(
        net, 3, bottleneck={"rate": "50 Mbit/s", "delay": "10 ms", "queue": "1 BDP", "rtt": "30 ms"}
    )
    (a0, b0), (a1, b1), (a2, b2) = bell.pairs
    net.tcp(a0, b0)
    net.page(a1, b1, response="60 kB", objects=5, connections="new", start="100 ms")
    net.page(a2, b2, response="10 kB", objects=8, think="20 ms", start="150 ms")
    net.record("10 ms", queues=[bell.bottleneck])
    return net


def lossy(folder: Path) -> Network:
    """Links that lose, reorder, double and delay."""
    net = Network()
    bell = dumbbell(
        net,
        3,
        bottleneck={
            "rate": "100 Mbit/s",
            "delay": "5 ms",
            "queue": "200 packets",
            "loss": 0.002,
            "jitter": "300 us",
            "reorder": 0.01,
            "reorder_by": "2 ms",
            "duplicate": 0.002,
        },
        access={"burst_loss": (0.001, 0.2, 0.0, 0.5)},
    )
    for (a, b), options in zip(bell.pairs, ({}, {"sack": False}, {"timestamps": False}), strict=True):
        net.tcp(a, b, **options)
    net.record("10 ms", queues=[bell.bottleneck])
    return net


def captured(folder: Path) -> Network:
    """Captures before, between and behind P4 switches."""
    net = Network()
    switch = net.switch("switch", ROUTER)
    a, b = net.host("a"), net.host("b")
    links = [net.link(host, switch, rate="100 Mbit/s", delay="2 ms", queue="60 packets") for host in (a, b)]
    route(net, switch)
    net.tcp(a, b, size="1500 kB", ecn="accurate")
    net.udp(b, a, rate="1 Mbit/s", payload=100, stop="200 ms")
    net.capture(links[0], a, folder / "sent.pcap")
    net.capture(links[0], switch, folder / "entered.pcap")
    net.capture(links[1], switch, folder / "left.pcap", snap="60 B")
    return net


NETWORKS: dict[str, tuple[Callable[[Path], Network], str]] = {
    "plain": (plain, "2 s"),
    "p4_queue": (p4_queue, "1 s"),
    "managed": (managed, "3 s"),
    "pages": (pages, "2 s"),
    "lossy": (lossy, "2 s"),
    "captured": (captured, "1 s"),
}


def digest_network(
    name: str, change: Callable[[Network], None] = lambda net: None, threads: int = 1
) -> Digests:
    """What comes of one of the small networks, after `change`."""
    found: Digests = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        build, until = NETWORKS[name]
        for seed in SEEDS:
            net = build(folder)
            change(net)
            result: Result = net.run(until, seed=seed, threads=threads)
            key = f"network {name}, seed {seed}"
            digest_tables(found, key, [{table: getattr(result, table) for table in TABLES}])
            found[f"{key}/work"] = digest_of([result.events, result.hops])
            for path in sorted(folder.glob("*.pcap")):
                found[f"{key}/{path.name}"] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return found


# Experiments.


def drawn(figure: Any) -> list[Any]:
    """The data that a figure draws."""
    data: list[Any] = []
    for axes in figure.axes:
        for line in axes.lines:
            data.append(np.asarray(line.get_xydata(), dtype=float).ravel().tolist())
        for collection in axes.collections:
            data.append(np.ma.getdata(collection.get_offsets()).astype(float).ravel().tolist())
            data.extend(path.vertices.ravel().tolist() for path in collection.get_paths())
        for patch in axes.patches:
            data.append(np.asarray(patch.get_path().vertices, dtype=float).ravel().tolist())
            data.append(patch.get_patch_transform().get_matrix().ravel().tolist())
        for image in axes.images:
            data.append(np.ma.getdata(image.get_array()).astype(float).ravel().tolist())
    return data


def tidegate(*words: str | Path) -> str:
    """What a command prints. A process of its own: one that has used Polars cannot fork."""
    command = [sys.executable, "-m", "tidegate.cli", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def digest_experiment(name: str, threads: int = 1) -> Digests:
    """What comes of an experiment's `--quick`."""
    found: Digests = {}
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "run"
        seeds = ("--seed", str(SEEDS[0]), "--repeat", str(len(SEEDS)))
        words = (*seeds, "--threads", str(threads), "--out", out, "--json")
        answer = json.loads(tidegate("run", name, "--quick", *words))
        key = f"experiment {name}"
        rows = answer["rows"]
        for column in dict.fromkeys(column for row in rows for column in row):
            found[f"{key}/rows/{column}"] = digest_of([row.get(column) for row in rows])
        silent = [claim["id"] for claim in answer["claims"] if not claim["holds"] and not claim["why"]]
        if silent:
            sys.exit(f"{name}: claims that do not hold must say why: {', '.join(silent)}")
        for claim in answer["claims"]:
            numbers = re.findall(r"-?\d+(?:\.\d+)?", claim["measured"])
            found[f"{key}/claims/{claim['id']}"] = digest_of([claim["holds"], numbers])
        folders = dict.fromkeys(f"{row['case']}-{row['seed']}" for row in rows)
        tables = [
            {table: pl.read_parquet(out / "tables" / folder / f"{table}.parquet") for table in TABLES}
            for folder in folders
        ]
        digest_tables(found, key, tables)
        found[f"{key}/figure"] = digest_of(drawn(experiments.redraw(out)))
    return found


# Examples: captures replayed, on both engines.


def example_packets() -> Iterator[tuple[int, bytes]]:
    """Some hundred packets, of all protocols and of none."""
    generator = np.random.default_rng(7)
    for number in range(400):
        body = generator.bytes(int(generator.integers(0, 120)))
        source, target = (int(generator.integers(1, 6)) for _ in range(2))
        ethernet = bytes([2, 0, 0, 0, 0, target, 2, 0, 0, 0, 0, source]) + b"\x08\x00"
        kind = int(generator.integers(0, 5))
        if kind == 4:
            yield number * 10_000, ethernet[:12] + generator.bytes(2) + body
            continue
        ports = bytes([0, source, 0, 80 if kind == 1 else target])
        if kind % 2:
            flags = int(generator.choice([2, 16, 17, 18]))
            payload = ports + generator.bytes(8) + bytes([0x50, flags]) + generator.bytes(6) + body
        else:
            payload = ports + (8 + len(body)).to_bytes(2, "big") + b"\0\0" + body
        ip = bytearray(bytes([0x45, int(generator.integers(0, 4))]) + (20 + len(payload)).to_bytes(2, "big"))
        ip += generator.bytes(4) + bytes([int(generator.integers(0, 5)), 6 if kind % 2 else 17, 0, 0])
        ip += bytes([10, 0, source, 1, 10, 0, target, 1])
        total = sum(int.from_bytes(ip[at : at + 2], "big") for at in range(0, 20, 2))
        total = (total & 0xFFFF) + (total >> 16)
        ip[10:12] = (~((total & 0xFFFF) + (total >> 16)) & 0xFFFF).to_bytes(2, "big")
        yield number * 10_000, ethernet + bytes(ip) + payload


EXAMPLE_COMMANDS = {
    "ipv4_router": [
        "table_add routes next_hop 10.0.0.0/8 => 2 02:00:00:00:00:01 02:00:00:00:00:02",
        "table_add routes next_hop 10.0.3.0/24 => 3 02:00:00:00:00:03 02:00:00:00:00:04",
        "table_add routes next_hop 10.0.4.1/32 => 4 02:00:00:00:00:05 02:00:00:00:00:06",
    ],
    "learning_switch": [
        "mc_mgrp_create 1",
        "mc_node_create 0 1 2 3",
        "mc_node_associate 1 0",
        "table_add source NoAction 02:00:00:00:00:03 =>",
        "table_add destination forward 02:00:00:00:00:03 => 3",
    ],
    "load_balancer": [
        "act_prof_create_member servers server 2 02:00:00:00:00:02 10.1.0.2",
        "act_prof_create_member servers server 3 02:00:00:00:00:03 10.1.0.3",
        "act_prof_create_group servers",
        "act_prof_add_member_to_group servers 0 0",
        "act_prof_add_member_to_group servers 1 0",
        "table_indirect_add_with_group virtual_address 10.0.2.1 => 0",
    ],
}


def digest_example(folder: Path) -> Digests:
    """What a replay writes of an example; its STF test passes on both engines."""
    from conftest import pcap

    found: Digests = {}
    program, test = (folder / f"{folder.name}{suffix}" for suffix in (".p4", ".stf"))
    for engine in ("interp", "jit"):
        tidegate("stf", program, test, "--engine", engine)
    with tempfile.TemporaryDirectory() as place:
        capture, out = Path(place) / "in.pcap", Path(place) / "out"
        capture.write_bytes(pcap(list(example_packets()), nanoseconds=True))
        inputs = [word for port in (1, 2) for word in ("--in", f"{port}={capture}")]
        commands = Path(place) / "commands"
        commands.write_text("\n".join(EXAMPLE_COMMANDS.get(folder.name, [])))
        tidegate("replay", program, *inputs, "--out", out, "--commands", commands)
        for path in sorted(out.glob("*.pcap")):
            found[f"example {folder.name}/{path.name}"] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return found


def compare(found: Digests, recorded: Digests, of: Callable[[str], bool]) -> list[str]:
    """What is not as it was, of the things that were looked at."""
    wrong = [
        f"{key}: {'is new' if key not in recorded else 'has changed'}"
        for key, digest in found.items()
        if recorded.get(key) != digest
    ]
    return wrong + [f"{key}: is gone" for key in recorded if of(key) and key not in found]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="experiments and examples too")
    parser.add_argument("--record", action="store_true", help="what is found is right from now on")
    parser.add_argument("--only", default="", help="things whose name holds this")
    parser.add_argument("--threads", type=int, default=1, help="threads of a simulation")
    asked = parser.parse_args()
    jobs: dict[str, Callable[[], Digests]] = {}
    for name in NETWORKS:
        jobs[f"network {name}"] = lambda name=name: digest_network(name, threads=asked.threads)
    if asked.full:
        for folder in sorted(path for path in EXAMPLES.iterdir() if path.is_dir()):
            jobs[f"example {folder.name}"] = lambda folder=folder: digest_example(folder)
        for name in experiments.all_experiments():
            jobs[f"experiment {name}"] = lambda name=name: digest_experiment(name, asked.threads)
    recorded: Digests = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    wrong: list[str] = []
    for name, job in jobs.items():
        if asked.only not in name:
            continue
        began = time.perf_counter()
        found = job()

        def of(key: str, name: str = name) -> bool:
            return key.startswith((f"{name}/", f"{name},"))

        differences = compare(found, recorded, of)
        print(
            f"{name}: {len(differences) or 'no'} differences, {time.perf_counter() - began:.1f} s", flush=True
        )
        wrong += differences
        if asked.record:
            recorded = {key: digest for key, digest in recorded.items() if not of(key)} | found
    if asked.record:
        RECORDED.write_text(json.dumps(dict(sorted(recorded.items())), indent=0) + "\n")
        return 0
    for difference in wrong:
        print(difference)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
