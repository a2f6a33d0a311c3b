"""Live ports beside the kernel's own bridge, in the same run: `python benches/live.py [--seconds S] [--rounds N] [--json]`.

Two namespaces with a host each, and between them in turns: a veth pair, a bridge, a bare AF_XDP forwarder (`cargo build --release -p
live --example bare`; left out where there is no cargo), and `tidegate switch` with the IPv4 router program by each kind of port and with
each live profile. One CUBIC flow at MTU 1500 with the hosts' offloads off; 64-byte UDP as fast as iperf3 sends; round trips of an
echo over an otherwise idle path and under 1 Gbit/s of UDP, by the kernel's stamps; the same over an emulated delay. The hosts are set up
as the lab sets up its own: 128 KiB of a connection below TCP. Switch and bare forwarder stay on a processor, and hosts receive, as
`tidegate.lab.placement` says; for the bridge and without anything between, hosts receive on any processor, which is faster there.
Needs root, iperf3 and ethtool.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tidegate import p4
from tidegate.lab.interfaces import before_interfaces
from tidegate.lab.placement import placement
from tidegate.lab.plan import OUTPUT_LIMIT
from tidegate.switch.ports import SwitchPort
from tidegate.switch.running import LiveSwitch

ROUTER = Path(__file__).parent.parent / "examples/p4/ipv4_router/ipv4_router.p4"
KINDS = ("xdp", "xdp-generic", "packet", "tap")
SINGLY = "xdp, singly"
THROUGHPUT = "xdp, throughput"
THROUGHPUT_SINGLY = "xdp, throughput, singly"
TWO = ", two threads"
BARE = {"bare": "latency", "bare, throughput": "throughput"}
LOAD_MBPS = 1000
DELAYS = ("1 ms", "10 ms", "50 ms")
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
ETH_P_ALL, SO_TIMESTAMPNS, SO_ATTACH_FILTER = 3, 35, 26
PAYLOAD_OF_64_BYTES = 22
NAMES = tuple(f"tgbench{os.getpid()}-{part}" for part in ("a", "b", "switch"))
PLACE = f"/run/netns/{NAMES[2]}"
_libc = ctypes.CDLL(None, use_errno=True)

Numbers = dict[str, float]
MORE_IS_BETTER = ("tcp_mbps", "udp_kpps", "udp_read_kpps", "udp_sent_kpps")
T = TypeVar("T")


def ip(*words: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


def command(host: int, *words: str) -> list[str]:
    """A command in a host's namespace."""
    return ["ip", "netns", "exec", NAMES[host], *words]


def within(name: str, act: Callable[[], T]) -> T:
    """Do something in a namespace, on a thread of its own."""
    done: list[T] = []

    def there() -> None:
        with open(f"/run/netns/{name}", "rb") as file:
            if _libc.setns(file.fileno(), 0x4000_0000) != 0:
                raise OSError(ctypes.get_errno(), name)
        done.append(act())

    thread = threading.Thread(target=there)
    thread.start()
    thread.join()
    return done[0]


def configure(host: int) -> None:
    """The host's interface `e0` with its address, offloads off."""
    name = NAMES[host]
    ip("-n", name, "link", "set", "e0", "address", MACS[host], "mtu", "1500", "up")
    ip("-n", name, "addr", "add", f"10.0.0.{host + 1}/24", "dev", "e0")
    ip("-n", name, "neigh", "replace", f"10.0.0.{2 - host}", "lladdr", MACS[1 - host], "dev", "e0")
    off = [word for what in ("tx", "tso", "gso", "gro") for word in (what, "off")]
    subprocess.run(command(host, "ethtool", "-K", "e0", *off), check=False, capture_output=True)
    within(name, lambda: Path("/proc/sys/net/ipv4/tcp_limit_output_bytes").write_text(str(OUTPUT_LIMIT)))


@contextmanager
def namespaces(placed: bool = True) -> Iterator[None]:
    """Two hosts and a place between them, taken away at the end; not `placed`: the hosts receive on any processor."""
    anywhere = tuple(os.sched_getaffinity(0))
    where = placement()
    receiving = (where.senders, where.receivers) if placed else (anywhere, anywhere)
    try:
        for name in NAMES:
            ip("netns", "add", name)
            for which in ("all", "default"):
                path = Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6")
                within(name, lambda path=path: path.write_text("1"))
            ip("-n", name, "link", "set", "lo", "up")
        for name, processors in zip(NAMES[:2], receiving, strict=True):
            within(name, lambda processors=processors: before_interfaces(processors))
        yield
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def veths() -> None:
    """Links from the hosts to the place between them."""
    for host in range(2):
        ip(
            "link",
            "add",
            "e0",
            "netns",
            NAMES[host],
            "type",
            "veth",
            "peer",
            f"p{host + 1}",
            "netns",
            NAMES[2],
        )
        ip("-n", NAMES[2], "link", "set", f"p{host + 1}", "up")
        configure(host)


@contextmanager
def direct() -> Iterator[None]:
    """Nothing between the hosts."""
    with namespaces(placed=False):
        ip("link", "add", "e0", "netns", NAMES[0], "type", "veth", "peer", "e0", "netns", NAMES[1])
        configure(0)
        configure(1)
        yield


@contextmanager
def bridge() -> Iterator[None]:
    """The kernel's bridge."""
    with namespaces(placed=False):
        veths()
        ip("-n", NAMES[2], "link", "add", "br0", "type", "bridge")
        for interface in ("p1", "p2"):
            ip("-n", NAMES[2], "link", "set", interface, "master", "br0")
        ip("-n", NAMES[2], "link", "set", "br0", "up")
        yield


@contextmanager
def switch(
    kind: str, delay: str = "0 s", merge: bool = True, profile: str = "latency", threads: int = 1
) -> Iterator[LiveSwitch]:
    """The switch, with ports of a kind."""
    with namespaces():
        if kind != "tap":
            veths()
        ports = [SwitchPort(number, f"p{number}", kind, PLACE, delay=delay) for number in (1, 2)]
        # Several threads have no processors of their own: hosts need some.
        processor = placement().network if threads == 1 else None
        live = LiveSwitch(
            p4.compile(ROUTER), ports, merge=merge, profile=profile, processor=processor, threads=threads
        )
        for number, mac in enumerate(MACS, 1):
            values = [number, "02:00:00:00:ff:00", mac]
            live.api.table_add("routes", [f"10.0.0.{number}/32"], "next_hop", values)
        with live:
            if kind == "tap":
                for host in range(2):
                    ip("-n", NAMES[2], "link", "set", f"p{host + 1}", "netns", NAMES[host], "name", "e0")
                    configure(host)
            yield live


def build_bare() -> Path | None:
    """The program of `crates/live/examples/bare.rs`."""
    root = Path(__file__).parent.parent
    if shutil.which("cargo") is None:
        return None
    words = ["cargo", "build", "--release", "--locked", "--package", "live", "--example", "bare"]
    subprocess.run([*words, "--quiet"], cwd=root, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "release/examples/bare"


@contextmanager
def bare(program: Path, profile: str) -> Iterator[None]:
    """What AF_XDP costs without a network between the ports."""
    with namespaces():
        veths()
        with subprocess.Popen([program, PLACE, "p1", "p2", profile], stdin=subprocess.PIPE) as forwarder:
            try:
                if (number := placement().network) is not None:
                    os.sched_setaffinity(forwarder.pid, {number})
                time.sleep(0.3)
                yield
            finally:
                forwarder.communicate()


def iperf(seconds: float, *words: str) -> dict[str, Any]:
    """One run from host a to host b; the summary."""
    server = subprocess.Popen(
        command(1, "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 5
        while within(NAMES[1], lambda: ":1451 " not in Path("/proc/thread-self/net/tcp6").read_text()):
            if time.monotonic() > deadline:
                raise SystemExit("iperf3 -s does not start")
            time.sleep(0.01)
        client = command(0, "iperf3", "-c", "10.0.0.2", "-t", str(seconds), "-J", *words)
        done = subprocess.run(client, capture_output=True, text=True, timeout=seconds + 20, check=True)
    finally:
        server.kill()
        server.wait()
    end: dict[str, Any] = json.loads(done.stdout)["end"]
    return end


def tcp(seconds: float) -> Numbers:
    """One CUBIC flow."""
    end = iperf(seconds, "-C", "cubic")
    return {
        "tcp_mbps": end["sum_received"]["bits_per_second"] / 1e6,
        "tcp_retransmits": end["sum_sent"]["retransmits"],
    }


def received() -> int:
    """Packets that have come to host b's interface."""
    shown = subprocess.run(
        ["ip", "-n", NAMES[1], "-s", "-j", "link", "show", "e0"], capture_output=True, check=True
    )
    count: int = json.loads(shown.stdout)[0]["stats64"]["rx"]["packets"]
    return count


def udp(seconds: float) -> Numbers:
    """Frames of 64 bytes, as fast as iperf3 sends them."""
    before = received()
    end = iperf(seconds, "-u", "-b", "0", "-l", str(PAYLOAD_OF_64_BYTES))
    came = received() - before
    stream = end["streams"][0]["udp"]
    return {
        "udp_kpps": came / stream["seconds"] / 1e3,
        "udp_read_kpps": (stream["packets"] - stream["lost_packets"]) / stream["seconds"] / 1e3,
        "udp_sent_kpps": stream["packets"] / stream["seconds"] / 1e3,
        "udp_out_of_order": stream.get("out_of_order", 0),
    }


def round_trips(count: int, gap: float) -> list[float]:
    """Microseconds of ICMP echoes, which the kernel answers, by its stamps at host a's interface; in order of size."""

    def opened() -> tuple[socket.socket, socket.socket]:
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        wire.bind(("e0", ETH_P_ALL))
        wire.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        # A program of classic BPF: of all that passes, ICMP over IPv4 alone.
        code = (0x30, 0, 0, 9), (0x15, 0, 1, socket.IPPROTO_ICMP), (0x06, 0, 0, 0xFFFF), (0x06, 0, 0, 0)
        steps = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in code))
        program = struct.pack("HL", len(code), ctypes.addressof(steps))
        wire.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
        wire.settimeout(1)
        return wire, socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)

    wire, client = within(NAMES[0], opened)
    stamps: dict[tuple[int, int], float] = {}
    with wire, client:
        for number in range(count + 10):
            head = struct.pack("!BBHHH", 8, 0, 0, 1, number) + bytes(48)
            total = sum(struct.unpack(f"!{len(head) // 2}H", head))
            total = (total & 0xFFFF) + (total >> 16)
            client.sendto(head[:2] + struct.pack("!H", ~total & 0xFFFF) + head[4:], ("10.0.0.2", 0))
            try:
                while (0, number) not in stamps:
                    packet, said, _, _ = wire.recvmsg(200, 100)
                    if len(packet) < 28 or packet[9] != socket.IPPROTO_ICMP:
                        continue
                    kind, sequence = packet[20], int.from_bytes(packet[26:28], "big")
                    seconds, nanoseconds = struct.unpack("qq", said[0][2])
                    stamps[kind, sequence] = seconds * 1e6 + nanoseconds / 1e3
            except TimeoutError:
                continue
            time.sleep(gap)
    # The first ones find everything asleep.
    numbers = [number for number in range(10, count + 10) if {(0, number), (8, number)} <= stamps.keys()]
    return sorted(stamps[0, number] - stamps[8, number] for number in numbers)


def share(values: list[float], part: float) -> float:
    """The value that a share of them does not exceed."""
    return values[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


def echo(count: int) -> Numbers:
    """Round trips with nothing else going on."""
    found = round_trips(count, 0.003)
    return {"rtt_p50_us": share(found, 0.5), "rtt_p99_us": share(found, 0.99), "rtt_lost": count - len(found)}


def loaded_echo(count: int) -> Numbers:
    """Round trips while 1 Gbit/s of UDP goes the same way."""
    seconds = str(count * 0.004 + 2)
    words = ("-u", "-b", f"{LOAD_MBPS}M", "-l", "1448", "-t", seconds)
    server = subprocess.Popen(
        command(1, "iperf3", "-s", "-1", "-p", "5202"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    client = None
    try:
        time.sleep(0.3)
        client = subprocess.Popen(
            command(0, "iperf3", "-c", "10.0.0.2", "-p", "5202", *words), stdout=subprocess.DEVNULL
        )
        time.sleep(1.0)
        found = round_trips(count, 0.003)
    finally:
        for process in (client, server):
            if process is not None:
                process.kill()
                process.wait()
    shares = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
    return {f"loaded_rtt_{name}_us": share(found, part) for name, part in shares.items()} | {
        "loaded_rtt_lost": count - len(found)
    }


def burnt(seconds: float) -> float:
    """Share of a core that the switch's thread takes while nothing happens."""

    def ticks() -> int:
        for task in Path("/proc/self/task").iterdir():
            if (task / "comm").read_text().strip() == "tidegate-live":
                return sum(
                    int(field) for field in (task / "stat").read_text().rsplit(")", 1)[1].split()[11:13]
                )
        return 0

    before = ticks()
    time.sleep(seconds)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seconds", type=float, default=3.0, help="of each flow")
    options.add_argument("--rounds", type=int, default=3, help="turns of each contender; the best counts")
    options.add_argument("--only", nargs="*", help="contenders")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    if given.seconds < 1 or given.rounds < 1:
        options.error("--seconds and --rounds are 1 or more: iperf3 takes less than a second for no end")
    if os.geteuid() != 0:
        raise SystemExit("benches/live.py needs root: it makes network namespaces")
    contenders: dict[str, Callable[[], Any]] = {"veth": direct, "bridge": bridge}
    program = build_bare()
    if program is not None:
        contenders |= {name: lambda profile=profile: bare(program, profile) for name, profile in BARE.items()}
    contenders |= {kind: lambda kind=kind: switch(kind) for kind in KINDS}
    contenders[SINGLY] = lambda: switch("xdp", merge=False)
    contenders[THROUGHPUT] = lambda: switch("xdp", profile="throughput")
    contenders[THROUGHPUT_SINGLY] = lambda: switch("xdp", merge=False, profile="throughput")
    for name, profile in ((SINGLY, "latency"), (THROUGHPUT_SINGLY, "throughput")):
        contenders[name + TWO] = lambda profile=profile: switch(
            "xdp", merge=False, profile=profile, threads=2
        )
    runs: dict[str, list[Numbers]] = {name: [] for name in contenders if not given.only or name in given.only}
    for _ in range(given.rounds):
        for name, taken in runs.items():
            with contenders[name]() as live:
                numbers = echo(200) | tcp(given.seconds) | udp(given.seconds) | loaded_echo(1000)
                if isinstance(live, LiveSwitch):
                    numbers["idle_core"] = burnt(1.0)
                taken.append(numbers)
    # Whatever else the machine does can only make it worse.
    best = {
        name: {key: (max if key in MORE_IS_BETTER else min)(run[key] for run in taken) for key in taken[0]}
        for name, taken in runs.items()
    }
    delays = {} if given.only else {delay: delayed(delay) for delay in DELAYS}
    if given.json:
        print(json.dumps({"best": best, "delays": delays, "runs": runs}))
        return
    for name, numbers in best.items():
        print(f"{name:12}" + "".join(f" {key} {value:.4g}" for key, value in numbers.items()))
    if "bridge" in best:
        for name in [name for name in best if name not in ("veth", "bridge")]:
            tcp_share = best[name]["tcp_mbps"] / best["bridge"]["tcp_mbps"]
            udp_share = best[name]["udp_kpps"] / best["bridge"]["udp_kpps"]
            more = best[name]["rtt_p50_us"] - best["bridge"]["rtt_p50_us"]
            print(
                f"{name} / bridge: TCP {tcp_share:.2f} (at least 0.7), packets {udp_share:.2f} (at least 1), "
                f"round trip {more:+.0f} us (at most +60)"
            )
    for delay, numbers in delays.items():
        print(f"delay {delay} each way:" + "".join(f" {key} {value:.1f}" for key, value in numbers.items()))


def delayed(delay: str) -> Numbers:
    """How much longer than twice the delay a round trip takes, and what the switch says of it."""
    with switch("auto", delay) as live:
        found = [rtt - 2000 * float(delay.split()[0]) for rtt in round_trips(300, 0.001)]
        late = live.statistics()["lateness"]
    return {
        "error_p50_us": share(found, 0.5),
        "error_p99_us": share(found, 0.99),
        "late_p50_us": late["p50"] / 1e6,
        "late_p99_us": late["p99"] / 1e6,
    }


if __name__ == "__main__":
    main()
