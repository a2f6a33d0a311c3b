"""`tidegate monitor -i`: an interface of a namespace, with connections over it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from namespaces import ip, needs_root, within
from switches import wait_for
from tidegate._core import TidegateError
from tidegate.monitor import LOOKED_AT, Interfaces, _of_interfaces, _Rates, _summary, end

_numbers = count()
BYTES = 3_000_000
BYTES_RETRANS = 208
"""Where `tcpi_bytes_retrans` is in the kernel's `struct tcp_info`."""


@pytest.fixture
def pair() -> Iterator[tuple[str, str]]:
    """Two namespaces with a veth pair between them: 10.8.0.1 and 10.8.0.2, `eth` in both."""
    names = [f"tgm{os.getpid()}-{next(_numbers)}" for _ in range(2)]
    for name in names:
        ip("netns", "add", name)
    try:
        peer = ["peer", "name", "eth", "netns", names[1]]
        ip("-n", names[0], "link", "add", "dev", "eth", "type", "veth", *peer)
        for number, name in enumerate(names, 1):
            ip("-n", name, "addr", "add", f"10.8.0.{number}/24", "dev", "eth")
            ip("-n", name, "link", "set", "dev", "eth", "up")
            ip("-n", name, "link", "set", "dev", "lo", "up")
        yield names[0], names[1]
    finally:
        for name in names:
            ip("netns", "del", name)


def transfer(pair: tuple[str, str], size: int = BYTES, port: int = 80) -> int:
    """A connection from 10.8.0.1 to a port of 10.8.0.2 that carries so many bytes; how many the kernel has sent again."""

    def listen() -> socket.socket:
        listener = socket.create_server(("10.8.0.2", port))
        listener.settimeout(10)
        return listener

    listener = within(f"/run/netns/{pair[1]}", listen)

    def serve() -> None:
        with listener, listener.accept()[0] as one:
            while one.recv(1 << 16):
                pass

    server = threading.Thread(target=serve)
    server.start()

    def send() -> int:
        with socket.create_connection(("10.8.0.2", port), timeout=10) as one:
            one.sendall(bytes(size))
            one.shutdown(socket.SHUT_WR)
            assert one.recv(1) == b""
            info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES_RETRANS + 8)
            return int.from_bytes(info[BYTES_RETRANS:], sys.byteorder)

    resent = within(f"/run/netns/{pair[0]}", send)
    server.join()
    return resent


def command(name: str, *words: str) -> list[str]:
    tidegate = str(Path(sys.prefix) / "bin" / "tidegate")
    return ["ip", "netns", "exec", name, tidegate, "monitor", "-i", "eth", *words]


def is_watched() -> bool:
    """Whether a packet socket of this thread's namespace is bound to an interface and gets what it carries."""
    _, *sockets = (line.split() for line in Path("/proc/thread-self/net/packet").read_text().splitlines())
    return any(one[4] != "0" and one[5] == "1" for one in sockets)


@needs_root
def test_both_directions_of_a_connection(pair: tuple[str, str]) -> None:
    with within(f"/run/netns/{pair[0]}", lambda: Interfaces(["eth"])) as watched:
        with ThreadPoolExecutor(1) as sender:
            transferred = sender.submit(transfer, pair)
            watched.run(1.5)
            # A busy machine acknowledges late, and the kernel sends again.
            resent = transferred.result()
        watched.run(0.2)
        answer = watched.answer()
        # Processors stamp packets before they queue them: of two directions at once, one can overtake.
        assert [warning for warning in watched.end() if "are stamped earlier" not in warning] == []
    (there,) = [flow for flow in answer["flows"] if flow["dst_port"] == 80]
    (back,) = [flow for flow in answer["flows"] if flow["src_port"] == 80]
    assert (there["payload_bytes"], there["syn"]) == (BYTES + resent, 1), (there, resent)
    assert (back["payload_bytes"], back["syn"]) == (0, 1)
    # It can send its FIN again too, of which the kernel counts no bytes.
    assert min(there["fin"], back["fin"]) >= 1
    if there["fin"] == 1:
        assert (there["retransmissions"] > 0) == (resent > 0), (there, resent)
    assert there["rtt_samples"] > 10
    assert 0 < there["rtt_ms_min"] <= there["rtt_ms_p50"] <= there["rtt_ms_p99"] < 1000
    assert answer["interfaces"] == ["eth"]
    assert answer["dropped_packets"] == 0
    assert answer["duration_s"] == pytest.approx(1.7, abs=0.8)


def look(duration_s: float, *flows: tuple[int, float, int]) -> dict[str, Any]:
    """An answer with flows: port, since when, bytes."""
    ends = {"protocol": "udp", "src": "10.8.0.1", "dst": "10.8.0.2", "dst_port": 9}
    return {
        "duration_s": duration_s,
        "flows": [{**ends, "src_port": port, "first_s": first, "bytes": size} for port, first, size in flows],
    }


def test_rates_are_of_the_last_interval_only() -> None:
    rates = _Rates(most=2)
    mega = 125_000
    now = [
        list(rates.look(answer).values())
        for answer in (
            look(1.0, (1, 0.1, 3 * mega)),
            # A new one is stamped a little before the last look, and there was room for all.
            look(2.0, (1, 0.1, 4 * mega), (2, 0.999, mega)),
            # One that was there before takes the place of another: it has no rate yet.
            look(3.0, (1, 0.1, 5 * mega), (3, 0.5, 50 * mega)),
            look(4.0, (4, 3.5, 7 * mega), (3, 0.5, 52 * mega)),
            # Forgotten, and made anew.
            look(5.0, (4, 4.5, 2 * mega), (3, 0.5, 52 * mega)),
        )
    ]
    assert now == [pytest.approx(each) for each in ([3], [1, 1], [1], [7, 2], [2, 0])]


def test_a_match_comes_before_the_limit() -> None:
    asked = []

    class Watched:
        def run(self, seconds: float) -> None:
            time.sleep(0.01)

        def answer(self, most: int | None = None, match: str | None = None) -> dict[str, Any]:
            asked.append((most, match))
            return look(1.0) | {"flow_count": 10_000}

        def settle(self) -> None:
            pass

        def end(self) -> list[str]:
            return []

    _of_interfaces(Watched(), 0.005, 0.1, None, "bytes", ":7", 20, insecure=False, quiet=True)  # type: ignore[arg-type]
    assert asked == [(LOOKED_AT, ":7"), (None, None)]


@needs_root
def test_room_is_made_for_others(pair: tuple[str, str]) -> None:
    with within(f"/run/netns/{pair[0]}", lambda: Interfaces(["eth"], max_flows=10)) as watched:

        def send() -> None:
            for port in range(2000, 2050):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
                    one.bind(("10.8.0.1", port))
                    one.sendto(b"x", ("10.8.0.2", 9))

        within(f"/run/netns/{pair[0]}", send)
        watched.run(0.5)
        answer = watched.answer()
        assert answer["flow_count"] <= 20
        assert answer["untracked_packets"] > 0
        assert len(watched.answer(3)["flows"]) == 3
        # A limit is of the flows that match, by protocol, address or port as they are shown.
        first = answer["flows"][0]
        port = f"udp {end(first, 'src')} "
        for most in (1, 3):
            assert watched.answer(most, port)["flows"] == [first]
        assert watched.answer(3, port)["flow_count"] == answer["flow_count"]
        assert watched.answer(3, "tcp")["flows"] == []
        assert len(watched.answer(2, " 10.8.0.2:9")["flows"]) == 2
        assert any("--max-flows" in warning for warning in watched.end())


@needs_root
def test_the_command_for_a_time(pair: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "flows.parquet"
    words = command(pair[0], "--duration", "3", "--json", "--parquet", str(out), "--match", ":80")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
        wait_for(lambda: within(f"/run/netns/{pair[0]}", is_watched), 30)
        resent = transfer(pair)
        said, warned = other.communicate(timeout=30)
    assert other.returncode == 0, warned
    answer = json.loads(said)
    assert {flow["payload_bytes"] for flow in answer["flows"]} == {0, BYTES + resent}
    assert answer["interrupted"] is False
    assert out.exists()


@needs_root
def test_packets_that_nobody_takes_are_counted(pair: tuple[str, str]) -> None:
    """Nobody reads meanwhile: what the socket's buffer has no room for is missed, and said so."""

    sent = 0

    def send(count: int) -> int:
        done = 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.connect(("10.8.0.2", 9))
            for _ in range(count):
                with suppress(ConnectionRefusedError):
                    one.send(bytes(1400))
                    done += 1
        return done

    with within(f"/run/netns/{pair[0]}", lambda: Interfaces(["eth"])) as watched:
        watched.run(0.05)
        for _ in range(10):
            sent += within(f"/run/netns/{pair[0]}", lambda: send(10_000))
            dropped = watched.answer()["dropped_packets"]
            if dropped:
                break
        # A busy machine takes longer to read what the socket holds.
        for _ in range(50):
            watched.run(0.2)
            answer = watched.answer()
            heard = sum(flow["packets"] for flow in answer["flows"] if flow["dst_port"] == 9)
            if sent <= heard + answer["dropped_packets"]:
                break
        warnings = watched.end()
    assert answer["dropped_packets"] >= dropped > 0
    # ICMP comes back, and may be missed as well.
    assert heard < sent <= heard + answer["dropped_packets"]
    assert (
        f"{answer['dropped_packets']} packets came faster than they were taken; they are left out" in warnings
    )
    assert f", {answer['dropped_packets']:,} missed in " in _summary(answer, 1, 20)


@needs_root
@pytest.mark.parametrize(
    ("options", "ports"),
    [
        (["--top", "2"], [81, 80]),
        (["--top", "3", "--sort", "first_s"], [80, 80, 81]),
        (["--match", "10.8.0.2:80"], [80, 80]),
    ],
    ids=["by bytes", "the first", "of one port"],
)
def test_a_terminal_has_a_table_while_it_lasts(
    pair: tuple[str, str], options: list[str], ports: list[int]
) -> None:
    """On a terminal of its own: drawn each interval, in the order and with the flows that were asked for."""
    mine, theirs = pty.openpty()
    with os.fdopen(mine, "rb", buffering=0) as terminal:
        size = struct.pack("HHHH", 40, 150, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        words = command(pair[0], "--interval", "0.2", *options)
        # Which would come before the terminal's own size.
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        environment["TERM"] = "xterm"
        said = bytearray()

        def read() -> None:
            # A terminal whose last user is gone gives an error.
            with suppress(OSError):
                while part := terminal.read(1 << 16):
                    said.extend(part)

        with subprocess.Popen(words, stdout=theirs, stderr=theirs, stdin=theirs, env=environment) as other:
            os.close(theirs)
            reader = threading.Thread(target=read)
            reader.start()
            try:
                wait_for(lambda: within(f"/run/netns/{pair[0]}", is_watched), 30)
                transfer(pair, 100_000)
                transfer(pair, 3_000_000, port=81)
                before = len(said)
                # Looks at all of it.
                wait_for(lambda: said.count(b"RTT rule exact", before) >= 3, 30)
            finally:
                other.send_signal(signal.SIGINT)
            assert other.wait(30) == 0
            reader.join(30)
    text = said.decode()
    # Each look goes over the last one: up by its lines, which are cleared.
    frames = re.split(r"(?:\x1b\[1A\x1b\[2K)+", text)
    assert len(frames) > 3
    drawn = [frame for frame in frames if "10.8.0.2:80" in frame]
    # The last one may be the table at the end, and the one before is of the whole time as well.
    rows = [line for line in drawn[-2].splitlines() if "tcp" in line]
    assert [int(re.findall(r"10\.8\.0\.2:(\d+)", row)[0]) for row in rows] == ports, text
    assert "Mbit/s now" in drawn[-2]
    assert "RTT rule exact" in drawn[-2]


@needs_root
def test_an_interrupt_ends_it_with_the_table(pair: tuple[str, str]) -> None:
    with subprocess.Popen(
        command(pair[0]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as other:
        assert other.stderr is not None
        assert "Ctrl-C ends it" in other.stderr.readline()
        transfer(pair)
        time.sleep(0.5)
        other.send_signal(signal.SIGINT)
        said, warned = other.communicate(timeout=30)
    assert other.returncode == 0, warned
    assert "10.8.0.2:80" in said
    assert "RTT rule exact" in said


@needs_root
@pytest.mark.parametrize("as_json", [True, False])
def test_an_interrupt_before_its_time_is_one(pair: tuple[str, str], as_json: bool) -> None:
    words = command(pair[0], "--duration", "60", "--metrics-addr", "127.0.0.1:0")
    words += ["--json"] if as_json else []
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
        assert other.stderr is not None
        assert "metrics at" in other.stderr.readline()
        time.sleep(1)
        other.send_signal(signal.SIGINT)
        said, told = other.communicate(timeout=30)
    assert (other.returncode, told) == (130, "interrupted\n")
    assert json.loads(said)["interrupted"] is True if as_json else "RTT rule exact" in said


@needs_root
def test_metrics(pair: tuple[str, str]) -> None:
    words = command(pair[0], "--metrics-addr", "127.0.0.1:0", "--duration", "30", "--interval", "0.2")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
        assert other.stderr is not None
        page = other.stderr.readline().split()[-1]
        transfer(pair)
        time.sleep(1)
        text = within(
            f"/run/netns/{pair[0]}", lambda: urllib.request.urlopen(page, timeout=10).read().decode()
        )
        other.send_signal(signal.SIGINT)
        other.communicate(timeout=30)
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(lines["tidegate_monitor_packets_total"]) > 10
    (there,) = [
        line
        for line in lines
        if line.startswith("tidegate_monitor_flow_bytes_total") and 'dst_port="80"' in line
    ]
    assert float(lines[there]) > BYTES
    assert any('quantile="p50"' in line for line in lines)


@needs_root
def test_an_interface_that_goes_away(pair: tuple[str, str]) -> None:
    with within(f"/run/netns/{pair[0]}", lambda: Interfaces(["eth"])) as watched:
        ip("-n", pair[0], "link", "del", "dev", "eth")
        with pytest.raises(TidegateError, match="interface eth: network is down"):
            watched.run(5)


@needs_root
def test_an_interface_that_is_down(pair: tuple[str, str]) -> None:
    ip("-n", pair[0], "link", "set", "eth", "down")
    said = subprocess.run(command(pair[0]), capture_output=True, text=True)
    assert said.returncode == 1
    assert "interface eth: network is down; `ip link set eth up` changes that; the table is of" in said.stderr


@needs_root
@pytest.mark.parametrize("as_json", [True, False])
def test_what_was_seen_is_shown_when_an_interface_goes_away(pair: tuple[str, str], as_json: bool) -> None:
    words = command(pair[0], "--metrics-addr", "127.0.0.1:0", *(["--json"] if as_json else []))
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
        assert other.stderr is not None
        assert "metrics at" in other.stderr.readline()
        transfer(pair)
        time.sleep(0.5)
        ip("-n", pair[0], "link", "del", "dev", "eth")
        said, told = other.communicate(timeout=30)
    assert other.returncode == 1
    assert told.endswith("interface eth: network is down; the table is of what came before\n")
    assert "10.8.0.2" in said
    if as_json:
        assert json.loads(said)["failed"] == "interface eth: network is down"


@needs_root
@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["-i", "none"], 1, "there is no interface none"),
        (["-i", "lo", "-i", "lo"], 2, "given twice"),
        (["-i", "lo", "some.pcap"], 2, "captures, or interfaces"),
        ([], 2, "captures, or interfaces"),
        (["some.pcap", "--duration", "3"], 2, "are for interfaces"),
        (["some.pcap", "--interval", "3"], 2, "are for interfaces"),
        (["some.pcap", "--insecure"], 2, "--insecure is for --metrics-addr"),
        (["some.pcap", "--lost-after", "3"], 2, "need the router's other side"),
        (["-i", "lo", "--metrics-addr", "nowhere"], 1, "nowhere"),
        (["-i", "lo", "--metrics-addr", "0.0.0.0:0"], 1, "or --insecure if this is meant"),
        (["-i", "a name with spaces"], 1, "is not the name of an interface"),
        (["some.pcap", "--max-flows", "9" * 30], 2, "less than or equal to 4294967295"),
    ],
)
def test_refused(words: list[str], code: int, why: str) -> None:
    tidegate = str(Path(sys.prefix) / "bin" / "tidegate")
    done = subprocess.run(
        [tidegate, "monitor", *words], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == code
    assert why in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@needs_root
def test_without_rights() -> None:
    tidegate = str(Path(sys.prefix) / "bin" / "tidegate")
    done = subprocess.run(
        [
            "setpriv",
            "--bounding-set=-all",
            "--inh-caps=-all",
            "--ambient-caps=-all",
            tidegate,
            "monitor",
            "-i",
            "lo",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 1
    assert "needs root" in done.stderr
