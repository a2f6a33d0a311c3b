"""A switch between two veth interfaces, with traffic, a controller, and hostile clients: for minutes, or for an hour.

    .venv/bin/python tests/soak.py [--seconds 120] [--frames-per-second 100000] [--slow 1.0] [--entries 0]

It needs root. Hostile clients push programs that are too much for the compiler, read everything and leave it unread, open calls
and streams and say nothing, send bytes that are no messages, write a lot, scrape slowly, cut connections, and open as many as they can
and leave them idle. Meanwhile frames are sent from one host to the other, and a primary writes entries, groups of members with weights,
value sets and multicast groups, reads, and now and then connects anew. It prints figures, and ends with 1 if

- a frame was lost in the switch,
- an answer to the primary took longer than `--slow` seconds, or was an error,
- the switch's memory has grown, or it did not end as it should,
- an entry or a group that the primary wrote is missing at the end, or another one is there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc

sys.path.insert(0, str(Path(__file__).resolve().parent))

from namespaces import Place, place
from switches import MACS, frame, run, until_running
from tidegate import TidegateError, p4runtime
from tidegate.lab.datagrams import AT_ONCE, Batch
from tidegate.p4runtime import Connection
from tidegate.p4runtime.conftest import Bench, Ids, group, member, multicast, value_set
from tidegate.p4runtime.connection import Refused
from tidegate.p4runtime.messages import p4

PROGRAM = Path(p4runtime.__file__).with_name("everything.p4")
WARM_S = 0.25
"""Share of the time after which memory is looked at for the first time."""
GROWTH = 1.2
"""Memory may grow by this factor from the second quarter to the last, or by `GROWTH_MIB`."""
GROWTH_MIB = 64
CPU = 100
WAITING_S = 0.1
"""Frames that their sender could not send in so long are not sent at all."""
MOST_BATCHES = 32
"""That it sends at once."""
CONNECT_EVERY = 50
"""Rounds of the primary, after which it connects anew."""
CONNECT_S = 2
"""For so long the primary tries again to connect, as controllers do; it counts as one call."""
IDLE = 300
"""Connections that one client opens and leaves idle: more than the server takes in all."""

BOMBS = (
    "#define F(x) x x\n" + "F(" * 20_000 + "a" + ")" * 20_000,
    "enum E { " + ", ".join(f"m{number}" for number in range(60_000)) + " }\n",
    "#define J(a,b) J2(a,b)\n#define J2(a,b) a##b\n#define X0 aaaaaaaaaaaaaaaa\n"
    + "".join(f"#define X{i} J(X{i - 1},X{i - 1})\n" for i in range(1, 40))
    + "const bit<8> X39 = 1;\n",
    "(" * 500_000,
    "/*" + "x" * 1_000_000,
    PROGRAM.read_text().replace("(65536) cells", "(268435456) cells"),
)


def entry(ids: Ids, key: int, port: int) -> Any:
    """An entry that forwards frames to an address."""
    made = p4.TableEntry(table_id=ids("exact_table"))
    made.match.add(field_id=1, exact={"value": key.to_bytes(6).lstrip(b"\0")})
    made.action.action.action_id = ids("forward")
    made.action.action.params.add(param_id=1, value=bytes([port]))
    return p4.Entity(table_entry=made)


def objects(ids: Ids, number: int) -> list[tuple[str, Any]]:
    """Updates that make two members, a group of them by weights, a multicast group and a value set, and change them."""
    at: Any = SimpleNamespace(ids=ids)
    at.action = lambda *given: Bench.action(at, *given)
    weight = 1 + number % 4
    return [
        ("INSERT", member(at, "choices", 1, "forward", b"\1")),
        ("INSERT", member(at, "choices", 2, "forward", b"\2")),
        ("INSERT", group(at, 1, (1, 1), (2, 1))),
        ("MODIFY", group(at, 1, (1, weight), (2, 1))),
        ("INSERT", multicast(1, (1, 1))),
        ("MODIFY", multicast(1, (1, 1), (2, number % 1000 + 1))),
        ("MODIFY", value_set(at, b"\x77", (256 + number % 1000).to_bytes(2))),
    ]


def without(updates: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Updates that take away what others have made, the last first."""
    made = [entity for kind, entity in updates if kind == "INSERT"]
    return [("DELETE", entity) for entity in reversed(made)]


def wanted(updates: list[tuple[str, Any]]) -> list[Any]:
    """Entities as updates leave them, but for members."""
    return [entity for kind, entity in updates if kind == "MODIFY"]


# The primary, in a process of its own.


def primary(address: str, seconds: float, entries: int) -> dict[str, Any]:
    """Writes, deletes and reads until the time is up, with so many entries from the start; gives what came of it."""
    controller = Connection(address, election_id=1000)
    assert controller.next("arbitration").status.code == 0
    ids = Ids(controller.get_config().p4info)
    controller.write(("INSERT", entry(ids, int.from_bytes(MACS[2]), 2)))
    print("ready", flush=True)
    kept = {int.from_bytes(MACS[2])}
    for first in range(0, entries, 1000):
        keys = [0x0500_0000_0000 + number for number in range(first, min(first + 1000, entries))]
        controller.write(*[("INSERT", entry(ids, key, 1)) for key in keys])
        kept.update(keys)
    slowest: Counter[str] = Counter()
    took: list[float] = []
    began_at: list[float] = []
    errors: list[str] = []
    refused = 0
    table = p4.Entity(table_entry={"table_id": ids("exact_table")})

    def timed(what: str, act: Callable[[], Any]) -> None:
        began = time.monotonic()
        try:
            act()
        except TidegateError as error:
            errors.append(f"{what}: {error}")
        spent = time.monotonic() - began
        took.append(spent)
        began_at.append(began)
        slowest[what] = max(slowest[what], spent)  # type: ignore[assignment]

    def connect() -> None:
        nonlocal controller, refused
        until = time.monotonic() + CONNECT_S
        while True:
            controller.close()
            # Its last stream may not have been given up yet.
            controller = Connection(address, election_id=1000 + batch)
            try:
                status = controller.next("arbitration").status
                break
            except Refused as error:
                # Clients on its host have all connections just now.
                if error.code != "UNAVAILABLE" or time.monotonic() > until:
                    raise
                refused += 1
        if status.code:
            errors.append("connect: another one is primary")

    start = time.monotonic()
    until, batch = start + seconds, 0
    while time.monotonic() < until:
        batch += 1
        keys = [0x0400_0000_0000 + batch * 20 + number for number in range(20)]
        timed("insert", lambda: controller.write(*[("INSERT", entry(ids, key, 1)) for key in keys]))  # noqa: B023
        if len(kept) < 20_000:
            kept.update(keys[:2])
            keys = keys[2:]
        timed("delete", lambda: controller.write(*[("DELETE", entry(ids, key, 1)) for key in keys]))  # noqa: B023
        timed("read", lambda: controller.read(p4.Entity(counter_entry={})))
        made = objects(ids, batch)
        timed("objects", lambda: controller.write(*made))  # noqa: B023
        timed("objects deleted", lambda: controller.write(*without(made)))  # noqa: B023
        if batch % CONNECT_EVERY == 0:
            timed("connect", connect)
        time.sleep(0.05)
    found = {int.from_bytes(one.table_entry.match[0].exact.value) for one in controller.read(table)}
    made = objects(ids, batch)
    controller.write(*made)
    differ = [one for one in wanted(made) if list(controller.read(one)) != [one]]
    tenths: list[list[float]] = [[] for _ in range(10)]
    for at, spent in zip(began_at, took, strict=True):
        tenths[min(9, int((at - start) / seconds * 10))].append(spent)
    took.sort()
    controller.close()
    return {
        "primary's calls": len(took),
        "slowest, in s": {what: round(value, 3) for what, value in slowest.items()},
        "p50 and p99, in s": [round(took[len(took) * share // 100], 4) for share in (50, 99)],
        "median by tenths of the time, in s": [
            round(sorted(part)[len(part) // 2], 4) if part else None for part in tenths
        ],
        "errors": errors[:5],
        "connections refused and tried again": refused,
        "kept": len(kept),
        "missing": len(kept - found),
        "unexpected": len(found - kept),
        "groups and value sets that differ": [str(one) for one in differ],
    }


# Hostile clients, in a process of their own.


class Hostile:
    """Threads that do one thing each, over and over, until the time is up."""

    def __init__(self, address: str, page: str, seconds: float) -> None:
        self.address, self.page = address, page
        self.until = time.monotonic() + seconds
        self.done: Counter[str] = Counter()

    def run(self) -> dict[str, int]:
        """All of them; how often each was done."""
        threads = [
            threading.Thread(target=self._repeat, args=(act,), daemon=True)
            for act in (
                self.push_bombs,
                self.read_all,
                self.read_all_and_leave_it,
                self.read_all_and_go,
                self.open_calls,
                self.open_streams,
                self.take_roles,
                self.send_nonsense,
                self.write_much,
                self.scrape,
                self.scrape_slowly,
                self.cut_connections,
                self.open_connections,
            )
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.1, self.until + 10 - time.monotonic()))
        return dict(self.done)

    def _repeat(self, act: Callable[[random.Random], None]) -> None:
        chance = random.Random(act.__name__)
        while time.monotonic() < self.until:
            # What a client like this is told is no matter.
            with contextlib.suppress(TidegateError, grpc.RpcError, OSError, ValueError):
                act(chance)
            self.done[act.__name__] += 1
            time.sleep(0.01)

    @contextlib.contextmanager
    def _channel(self) -> Iterator[grpc.Channel]:
        with grpc.insecure_channel(self.address, options=[("grpc.use_local_subchannel_pool", 1)]) as made:
            yield made

    def _role(self, name: str, election: int = 1) -> Connection:
        return Connection(self.address, role=name, election_id=election)

    def push_bombs(self, chance: random.Random) -> None:
        with self._role("bombs") as controller:
            controller.next("arbitration")
            config = p4.ForwardingPipelineConfig(
                p4info=p4.P4Info(), p4_device_config=chance.choice(BOMBS).encode()
            )
            controller.set_config("VERIFY_AND_COMMIT", config)

    def _read(self, over: grpc.Channel, seconds: float) -> Any:
        asked = p4.ReadRequest(device_id=1)
        for kind in ("table_entry", "counter_entry", "register_entry", "meter_entry"):
            getattr(asked.entities.add(), kind).SetInParent()
        return over.unary_stream("/p4.v1.P4Runtime/Read")(asked.SerializeToString() * 5, timeout=seconds)

    def read_all(self, chance: random.Random) -> None:
        with self._channel() as over:
            for _ in self._read(over, 60):
                pass

    def read_all_and_leave_it(self, chance: random.Random) -> None:
        with self._channel() as over:
            reads = [self._read(over, 20) for _ in range(chance.randint(1, 40))]
            next(reads[0])
            time.sleep(chance.uniform(0, 5))

    def read_all_and_go(self, chance: random.Random) -> None:
        with self._channel() as over:
            read = self._read(over, 20)
            next(read)
            read.cancel()

    def open_calls(self, chance: random.Random) -> None:
        stop = threading.Event()

        def silent() -> Iterator[bytes]:
            stop.wait(8)
            yield from ()

        with self._channel() as over:
            names = ("Write", "Read", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig")
            calls = [
                over.stream_stream(f"/p4.v1.P4Runtime/{chance.choice(names)}")(silent()) for _ in range(60)
            ]
            time.sleep(chance.uniform(0, 7))
            for call in calls:
                call.cancel()
            stop.set()

    def open_streams(self, chance: random.Random) -> None:
        streams = [Connection(self.address, take_part=False) for _ in range(20)]
        time.sleep(chance.uniform(0, 7))
        for stream in streams:
            stream.close()

    def take_roles(self, chance: random.Random) -> None:
        with self._role(f"role {chance.randint(0, 999)}", 2**64 - 1) as controller:
            controller.next("arbitration", 5)

    def send_nonsense(self, chance: random.Random) -> None:
        with self._channel() as over:
            for name in ("Write", "Read", "SetForwardingPipelineConfig", "Capabilities", "StreamChannel"):
                data = chance.randbytes(chance.choice((0, 1, 100, 100_000, 5_000_000)))
                with contextlib.suppress(grpc.RpcError):
                    for _ in over.stream_stream(f"/p4.v1.P4Runtime/{name}")(iter([data] * 3), timeout=5):
                        pass

    def write_much(self, chance: random.Random) -> None:
        with self._role("writes") as controller:
            controller.next("arbitration")
            ids = Ids(controller.get_config().p4info)
            cell = p4.Entity(register_entry={"register_id": ids("cells"), "data": {"bitstring": b"\x05"}})
            one = p4.Entity(register_entry=cell.register_entry)
            one.register_entry.index.index = 7
            controller.write(*[("MODIFY", one)] * 4096)
            # All of its 65 536 cells each time; that many are not set in one go.
            controller.write(*[("MODIFY", cell)] * 200)
            with contextlib.suppress(Refused):
                controller.write_updates([(p4.Update.MODIFY, cell)] * 200, "DATAPLANE_ATOMIC")
            controller.write(*[("INSERT", one)] * 4096)

    def scrape(self, chance: random.Random) -> None:
        with urllib.request.urlopen(f"http://{self.page}/metrics", timeout=10) as answer:
            answer.read()

    def _page(self) -> socket.socket:
        host, _, port = self.page.rpartition(":")
        return socket.create_connection((host, int(port)), timeout=5)

    def scrape_slowly(self, chance: random.Random) -> None:
        opened = [self._page() for _ in range(chance.randint(1, 90))]
        for one in opened:
            with contextlib.suppress(OSError):
                one.sendall(chance.choice((b"G", b"GET / HTTP/1.1\r\n", b"A: b\r\n" * 5000, b"\r\n\r\n")))
        time.sleep(chance.uniform(0, 4))
        for one in opened:
            one.close()

    def cut_connections(self, chance: random.Random) -> None:
        host, _, port = self.address.rpartition(":")
        for _ in range(30):
            with socket.create_connection((host, int(port)), timeout=5) as raw:
                raw.sendall(chance.choice((b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", chance.randbytes(5000))))
                if chance.random() < 0.3:
                    time.sleep(0.2)

    def open_connections(self, chance: random.Random) -> None:
        host, _, port = self.address.rpartition(":")
        with contextlib.ExitStack() as stack:
            for _ in range(IDLE):
                raw = stack.enter_context(socket.create_connection((host, int(port)), timeout=5))
                raw.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0")
            time.sleep(chance.uniform(0, 7))


# All together.


def memory_mib(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def ports(page: str, netns: str) -> dict[str, int]:
    """What the switch's ports have counted."""
    code = (
        f"import urllib.request as u; print(u.urlopen('http://{page}/metrics', timeout=30).read().decode())"
    )
    words = ["ip", "netns", "exec", netns, sys.executable, "-c", code]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found: Counter[str] = Counter()
    for line in text.splitlines():
        for key, has in (
            ("received", ("port_packets_total", 'port="1"', 'way="received"')),
            ("sent", ("port_packets_total", 'port="2"', 'way="sent"')),
            ("lost at ports", ("port_dropped_total",)),
            ("dropped", ("tidegate_dropped_total",)),
        ):
            if not line.startswith("#") and all(part in line for part in has):
                found[key] += int(float(line.rpartition(" ")[2]))
    return found


class Traffic:
    """Frames from one host to the other."""

    def __init__(self, at: Place, rate: int) -> None:
        self.sent = 0
        self.late = 0
        """Frames that were not sent, as the sender itself had to wait."""
        self._host, self._rate = at.hosts[0], rate
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def _send(self) -> None:
        # Hosts are other machines elsewhere.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -20)
        data = frame(1, 2)
        batch = Batch(self._host.socket, len(data))
        batch.data[:] = data * AT_ONCE
        began = time.monotonic()
        while not self._stopping.wait(0.002):
            due = int((time.monotonic() - began) * self._rate)
            for _ in range(MOST_BATCHES):
                sent = batch.send(max(0, min(due - self.sent, AT_ONCE)))
                self.sent += sent
                if sent < AT_ONCE:
                    break
            # Not all that a busy machine has made wait.
            if (late := due - self.sent - int(WAITING_S * self._rate)) > 0:
                self.late += late
                began += late / self._rate

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()


def started(at: Place, *words: str) -> subprocess.Popen[str]:
    """This file in the switch's namespace."""
    command = ["ip", "netns", "exec", at.name, sys.executable, __file__, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def soak(seconds: float, rate: int, slow: float, entries: int) -> int:
    """All of it; the exit code."""
    os.environ["PYTHONFAULTHANDLER"] = "1"
    with place(2) as at:
        words = [str(PROGRAM), "-i", "1@p1", "-i", "2@p2", "--cpu-port", str(CPU), "--mode", "packet"]
        switch = run(at, *words, "--grpc-addr", ":0", "--metrics-addr", "127.0.0.1:0")
        said = until_running(switch)
        address = said.partition("P4Runtime on ")[2].partition(",")[0]
        page = said.partition("http://")[2].partition("/")[0]
        # `ip netns exec` becomes the command.
        pid = switch.pid
        sizes: list[tuple[float, float]] = []
        try:
            first = started(at, "primary", address, str(seconds), str(entries))
            assert first.stdout is not None
            assert first.stdout.readline() == "ready\n"
            with Traffic(at, rate) as traffic:
                hostile = started(at, "hostile", address, page, str(seconds - 5))
                # They are other machines elsewhere, and do not take the switch's processors.
                os.setpriority(os.PRIO_PROCESS, hostile.pid, 10)
                began = time.monotonic()
                while first.poll() is None:
                    sizes.append((time.monotonic() - began, memory_mib(pid)))
                    time.sleep(1)
                    if switch.poll() is not None:
                        # Its last words say what each thread was at.
                        assert switch.stderr is not None
                        print(switch.stderr.read()[-20_000:])
                        raise SystemExit(f"the switch has ended with {switch.returncode}")
                figures: dict[str, Any] = json.loads(first.stdout.read())
                figures["hostile"] = json.loads(hostile.communicate(timeout=600)[0])
            until = time.monotonic() + 30
            while (counted := ports(page, at.name))["sent"] < traffic.sent and time.monotonic() < until:
                time.sleep(1.1)
            figures["frames"] = {
                "sent by the host": traffic.sent,
                "not sent in time": traffic.late,
                **counted,
            }
        finally:
            switch.send_signal(signal.SIGTERM)
            _, rest = switch.communicate(timeout=60)
        parts = [
            [size for at_s, size in sizes if low <= at_s / seconds < low + WARM_S]
            for low in (WARM_S, 1 - WARM_S)
        ]
        before, after = (sum(part) / max(len(part), 1) for part in parts)
        figures["memory in MiB"] = {
            "second quarter": round(before),
            "last quarter": round(after),
            "most": round(max(size for _, size in sizes)),
        }
        figures["exit code"] = switch.returncode
    print(json.dumps(figures, indent=2))
    wrong = {
        "frames were lost": counted["received"] != traffic.sent or counted["sent"] != traffic.sent,
        "an answer was slow": max(figures["slowest, in s"].values()) > slow,
        "the primary had errors": bool(figures["errors"]),
        "entries are not as written": bool(figures["missing"] or figures["unexpected"]),
        "groups or value sets are not as written": bool(figures["groups and value sets that differ"]),
        "memory has grown": after > max(before * GROWTH, before + GROWTH_MIB),
        "the switch did not end well": switch.returncode != 0 or "Traceback" in rest,
    }
    for what in (what for what, holds in wrong.items() if holds):
        print(f"wrong: {what}")
    if "Traceback" in rest:
        print(rest[-3000:])
    return int(any(wrong.values()))


def main() -> int:
    """By what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--frames-per-second", type=int, default=100_000)
    parser.add_argument("--slow", type=float, default=1.0, help="longest time of an answer, in seconds")
    parser.add_argument("--entries", type=int, default=0, help="of the primary, when it begins")
    parser.add_argument("part", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.part:
        return soak(given.seconds, given.frames_per_second, given.slow, given.entries)
    kind, address, *more = given.part
    if kind == "primary":
        print(json.dumps(primary(address, float(more[0]), int(more[1]))))
    else:
        print(json.dumps(Hostile(address, more[0], float(more[1])).run()), flush=True)
        # Threads that still wait do not hold it up.
        os._exit(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
