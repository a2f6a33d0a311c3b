"""The page of metrics: what many, slow and huge clients get, and where it listens."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from namespaces import needs_root, place
from tidegate import TidegateError, web

PATIENCE_S = 20.0


class Counted(Collector):
    """A series that says how often it was collected, and one more."""

    def __init__(self) -> None:
        self.times = 0
        self.wrong = False

    def collect(self) -> Iterable[Metric]:
        self.times += 1
        if self.wrong:
            raise TidegateError("the switch is gone")
        yield GaugeMetricFamily("collected", "How often.", value=self.times)
        yield GaugeMetricFamily("other", "Another one.", value=1)


@contextmanager
def page() -> Iterator[tuple[Counted, str, tuple[str, int]]]:
    counted, registry = Counted(), CollectorRegistry(auto_describe=False)
    registry.register(counted)
    server = web.serve_metrics(registry, "127.0.0.1:0")
    host, _, port = server.address.rpartition(":")
    try:
        yield counted, f"http://{server.address}/metrics", (host, int(port))
    finally:
        server.stop()


def text(url: str, **headers: str) -> str:
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        data = answer.read()
        if answer.headers["Content-Encoding"] == "gzip":
            data = gzip.decompress(data)
        return str(data.decode())


def raw(at: tuple[str, int], data: bytes) -> socket.socket:
    made = socket.create_connection(at, timeout=PATIENCE_S)
    made.sendall(data)
    return made


def answer(made: socket.socket) -> bytes:
    """All that comes until the end."""
    parts = []
    try:
        while part := made.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    finally:
        made.close()
    return b"".join(parts)


def test_what_is_served() -> None:
    with page() as (_, url, at):
        assert "collected 1.0" in text(url)
        assert "collected 1.0" in text(url, **{"Accept-Encoding": "gzip"})
        assert "# EOF" in text(url, Accept="application/openmetrics-text; version=1.0.0")
        only = text(f"{url}?name[]=other")
        assert "other 1.0" in only
        assert "collected" not in only
        assert answer(raw(at, b"HEAD / HTTP/1.1\r\n\r\n")).endswith(b"\r\n\r\n")
        assert text(f"{url.removesuffix('/metrics')}/favicon.ico") == ""


def test_it_is_collected_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    counted, registry = Counted(), CollectorRegistry(auto_describe=False)
    registry.register(counted)
    snapshot = web.Snapshot(registry)
    for moment, times in ((100.0, 1), (100.9, 1), (101.0, 2), (101.9, 2), (103.0, 3)):
        clock[0] = moment
        snapshot.renew()
        assert counted.times == times
        assert [metric.name for metric in snapshot.collect()] == ["collected", "other"]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST / HTTP/1.1\r\n\r\n", b"405"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET //[ HTTP/1.1\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\xff\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nA: " + b"a" * 10_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\n" + b"A: a\r\n" * 3000, b"431"),
    ],
)
def test_requests_that_are_refused(request_: bytes, status: bytes) -> None:
    with page() as (counted, url, at):
        assert answer(raw(at, request_)).split(b" ")[1] == status
        assert counted.times == 0
        assert "collected 1.0" in text(url)


def test_a_failure_is_an_answer_and_it_goes_on() -> None:
    with page() as (counted, url, _):
        counted.wrong = True
        with pytest.raises(urllib.error.HTTPError) as caught:
            text(url)
        assert caught.value.code == 500
        assert "the switch is gone" in caught.value.read().decode()
        counted.wrong = False
        assert "collected 2.0" in text(url)


def test_slow_clients_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "REQUEST_S", 0.5)
    with page() as (_, url, at):
        silent, half = raw(at, b""), raw(at, b"GET / HT")
        assert (answer(silent), answer(half)) == (b"", b"")
        # It has an answer, and sends on and on.
        endless = raw(at, b"GET / HTTP/1.1\r\n\r\n")
        end = time.monotonic() + PATIENCE_S
        with suppress(OSError):
            while time.monotonic() < end:
                endless.sendall(bytes(1000))
                time.sleep(0.01)
            pytest.fail("it was never cut off")
        endless.close()
        assert "collected" in text(url)


def test_many_silent_clients_make_way() -> None:
    with page() as (_, url, at), ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(at)) for _ in range(web.MOST_CONNECTIONS + 20)]
        assert "collected" in text(url)
        silent[0].settimeout(PATIENCE_S)
        with suppress(ConnectionResetError):
            assert silent[0].recv(1) == b""


def test_clients_that_hold_their_answers_make_way() -> None:
    with page() as (_, url, at), ExitStack() as stack:
        for _ in range(web.MOST_CONNECTIONS + 20):
            stack.enter_context(raw(at, b"GET / HTTP/1.1\r\n\r\n"))
        for _ in range(20):
            assert "collected" in text(url)


def test_another_address_keeps_its_connection() -> None:
    with page() as (_, _, at), ExitStack() as stack:
        mine = stack.enter_context(
            socket.create_connection(at, timeout=PATIENCE_S, source_address=("127.0.0.2", 0))
        )
        for _ in range(web.MOST_CONNECTIONS + 20):
            stack.enter_context(socket.create_connection(at))
        mine.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert b"collected" in answer(mine)


def test_a_connection_is_closed_soon_after_its_answer() -> None:
    with page() as (_, _, at), raw(at, b"GET / HTTP/1.1\r\n\r\n") as made:
        while made.recv(65_536):
            pass
        end = time.monotonic() + web.REQUEST_S - 1
        with suppress(OSError):
            while time.monotonic() < end:
                made.sendall(b"x")
                time.sleep(0.05)
            pytest.fail("it stayed open")


def test_text_is_made_once_for_each_snapshot() -> None:
    snapshot = web.Snapshot(CollectorRegistry(auto_describe=False))
    made: list[object] = []

    def encode(what: object) -> bytes:
        made.append(what)
        return b"text"

    snapshot.renew()
    for packed in (False, True, True, False):
        found = snapshot.text("text/plain", encode, packed)
        assert (gzip.decompress(found) if packed else found) == b"text"
    assert len(made) == 1


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:9100", "box:9100"])
def test_addresses_that_others_reach_are_meant(address: str) -> None:
    with pytest.raises(
        TidegateError, match="anyone who reaches this address reads the metrics; give a loopback"
    ):
        web.serve_metrics(CollectorRegistry(), address)


BOTH = """
import json, socket, sys
from prometheus_client import CollectorRegistry
from tidegate import TidegateError, p4, web
from tidegate.p4runtime import Server
from tidegate.p4runtime.conftest import TEXT

def reached(port):
    found = []
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family) as made:
                made.settimeout(5)
                made.connect((host, port))
            found.append(host)
        except OSError:
            pass
    return found

program = p4.Program.from_text(TEXT)
for address in ("0.0.0.0:0", "[::]:0"):
    try:
        page = web.serve_metrics(CollectorRegistry(), address, insecure=True)
        print(json.dumps(reached(int(page.address.rpartition(":")[2]))))
        page.stop()
    except TidegateError as error:
        print(json.dumps(str(error)))
    try:
        with Server(program.pipeline(), program, address=address, insecure=True) as server:
            print(json.dumps(reached(int(server.address.rpartition(":")[2]))))
    except TidegateError as error:
        print(json.dumps(str(error)))
"""


@needs_root
@pytest.mark.parametrize("with_ipv6", [True, False])
def test_what_all_addresses_are(with_ipv6: bool) -> None:
    """`0.0.0.0` is IPv4 alone; `[::]` is IPv6 and IPv4, as far as the machine has them."""
    with place(0) as made:
        into = ["ip", "netns", "exec", made.name]
        for which in ("all", "lo", "default"):
            setting = f"net.ipv6.conf.{which}.disable_ipv6={0 if with_ipv6 else 1}"
            subprocess.run([*into, "sysctl", "-qw", setting], check=True)
        subprocess.run([*into, "ip", "link", "set", "lo", "up"], check=True)
        ran = subprocess.run(
            [*into, sys.executable, "-c", BOTH], capture_output=True, text=True, timeout=60, check=False
        )
        assert ran.returncode == 0, ran.stderr
        said = [json.loads(line) for line in ran.stdout.splitlines()]
        assert said[:2] == [["127.0.0.1"]] * 2
        assert said[2:] == [["127.0.0.1", "::1"] if with_ipv6 else ["127.0.0.1"]] * 2
