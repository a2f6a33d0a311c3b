"""Prometheus endpoint with bounded cost per client.

Metrics are collected, and written as text, at most once a second for all clients. A connection has one short request and a time
limit. At the connection limit one makes way, of the address that has most of them: the oldest that has its answer, or else the one
that has been without a request for longest.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder

from tidegate import addresses
from tidegate._core import TidegateError

SNAPSHOT_S = 1.0
"""Age of a snapshot that is still served."""
MOST_PARTS, MOST_KINDS = 8, 3
"""Parts of a snapshot that are made for requests with `name[]`, and content types of one that texts are made of."""
MOST_CONNECTIONS = 64
MOST_REQUEST = 8 << 10
"""Bytes of a request, with its header fields."""
REQUEST_S = 5.0
"""From a connection's start to the end of its request, and from the answer's start to its end."""
LINGER_S = 0.5
"""From the answer's end until the connection is closed if the client does not close it."""


@dataclass(frozen=True)
class Server:
    """Serves metrics, until `stop` is called."""

    address: str
    """`HOST:PORT`; port 0 was asked for any that is free, and is the one that was."""
    stop: Callable[[], None]


class Snapshot:
    """What a registry has collected last."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._taken: float | None = None
        self._metrics: list[Metric] = []
        self._names: frozenset[str] = frozenset()
        self._texts: dict[tuple[str, bool], bytes] = {}
        self._parts: dict[frozenset[str], Snapshot] = {}

    def only(self, names: Iterable[str]) -> Snapshot:
        """The part of it that has these samples; where more different parts are asked for in a second than a few, all of it."""
        wanted = frozenset(names)
        if wanted not in self._parts:
            if len(self._parts) >= MOST_PARTS:
                return self
            part = Snapshot(self._registry)
            part._taken, part._metrics, part._names = self._taken, self._metrics, wanted
            self._parts[wanted] = part
        return self._parts[wanted]

    def has_room(self, kind: str) -> bool:
        """Whether there may be a text of this content type: there are few, but some have a version that a client chooses."""
        kinds = {known for known, _ in self._texts}
        return kind in kinds or len(kinds) < MOST_KINDS

    def renew(self) -> None:
        """Collect, unless that was done just now."""
        if self._taken is None or time.monotonic() - self._taken >= SNAPSHOT_S:
            self._metrics = list(self._registry.collect())
            self._taken = time.monotonic()
            self._texts = {}
            self._parts = {}

    def text(self, kind: str, encode: Callable[[Any], bytes], packed: bool) -> bytes:
        """All of it as text of a content type, by gzip if `packed`; made once."""
        if (kind, packed) not in self._texts:
            made = gzip.compress(self.text(kind, encode, False), compresslevel=1) if packed else encode(self)
            self._texts[kind, packed] = made
        return self._texts[kind, packed]

    def collect(self) -> Iterator[Metric]:
        """As a registry gives it."""
        for metric in self._metrics:
            if not self._names:
                yield metric
                continue
            samples = [sample for sample in metric.samples if sample.name in self._names]
            if samples:
                part = Metric(metric.name, metric.documentation, metric.type)
                part.samples = samples
                yield part


class _Stage(IntEnum):
    """How far a connection is, in the order in which they make way."""

    ANSWERED = 0
    SILENT = 1
    ANSWERING = 2


@dataclass
class _Connection:
    peer: str
    stage: _Stage = _Stage.SILENT


class _Page:
    """A server's state; all of it runs on one thread."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._snapshot = Snapshot(registry)
        # The oldest first.
        self._open: dict[asyncio.StreamWriter, _Connection] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        about = _Connection(str((writer.get_extra_info("peername") or ("",))[0]))
        self._open[writer] = about
        if len(self._open) > MOST_CONNECTIONS:
            self._make_way(writer)
        # An answer is sent when the kernel has all of it.
        writer.transport.set_write_buffer_limits(0)
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                try:
                    request = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_S)
                except asyncio.LimitOverrunError:
                    answer = _answer("431 Request Header Fields Too Large", body=b"the request is too long\n")
                else:
                    answer = self._answer(request)
                about.stage = _Stage.ANSWERING
                async with asyncio.timeout(REQUEST_S):
                    writer.write(answer)
                    await writer.drain()
                about.stage = _Stage.ANSWERED
                async with asyncio.timeout(LINGER_S):
                    writer.write_eof()
                    # Until the client closes, whatever else it sends: unread bytes would make the kernel discard the answer.
                    while await reader.read(MOST_REQUEST):
                        pass
        finally:
            self._open.pop(writer, None)
            writer.transport.abort()

    def _make_way(self, newest: asyncio.StreamWriter) -> None:
        """Close one, of the address that has most."""
        counts = Counter(one.peer for one in self._open.values())
        most = max(counts.values())
        others = [one for one in self._open if one is not newest]
        # `min` gives the oldest of several.
        last = min(
            others,
            key=lambda one: (counts[self._open[one].peer] < most, self._open[one].stage),
        )
        del self._open[last]
        last.transport.abort()

    def _answer(self, request: bytes) -> bytes:
        """What a request gets."""
        first, *lines = request.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _answer("400 Bad Request", body=b"this is not HTTP\n")
        method, target, _ = words
        if method not in ("GET", "HEAD"):
            return _answer("405 Method Not Allowed", [("Allow", "GET, HEAD")], b"use GET\n")
        try:
            path, query = urlsplit(target)[2:4]
        except ValueError:
            return _answer("400 Bad Request", body=b"this is not a path\n")
        if path == "/favicon.ico":
            return _answer("200 OK")
        split = [line.partition(":") for line in lines if ":" in line]
        fields = {name.strip().lower(): value.strip() for name, _, value in split}
        try:
            self._snapshot.renew()
            names = parse_qs(query).get("name[]", [])
            encode, kind = choose_encoder(fields.get("accept", ""))
            snapshot = self._snapshot.only(names) if names else self._snapshot
            if not snapshot.has_room(kind):
                encode, kind = choose_encoder("")
            coding = fields.get("accept-encoding", "")
            packed = any(part.split(";")[0].strip().lower() == "gzip" for part in coding.split(","))
            body = snapshot.text(kind, encode, packed)
        except Exception as error:
            # It goes on to serve; what is wrong may be so for now only.
            return _answer("500 Internal Server Error", body=f"{error}\n".encode())
        headers = [("Content-Type", kind)]
        if packed:
            headers.append(("Content-Encoding", "gzip"))
        return _answer("200 OK", headers, body, only_head=method == "HEAD")


def _answer(
    status: str, headers: Iterable[tuple[str, str]] = (), body: bytes = b"", only_head: bool = False
) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers)]
    lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode() + (b"" if only_head else body)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens; 0.0.0.0 is IPv4 alone, [::] is IPv6 and IPv4."""
    family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind(where)
        made.listen(MOST_CONNECTIONS)
    except OSError:
        made.close()
        raise
    return made


def serve_metrics(registry: CollectorRegistry, address: str, insecure: bool = False) -> Server:
    """Serve what a registry collects at `HOST:PORT`, in a thread of its own. Raises TidegateError.

    `insecure` permits an address that other machines reach.
    """
    addresses.demand_local_metrics(address, insecure)
    host, port = addresses.parse(address)
    addresses.demand_free_metrics(address)
    try:
        listening = _listening(host, port)
    except OSError as error:
        raise TidegateError(f"--metrics-addr {address}: {error.strerror}; give another address") from None
    bound = listening.getsockname()[1]
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()
    page = _Page(registry)

    async def run() -> None:
        server = await asyncio.start_server(page.serve, sock=listening, limit=MOST_REQUEST)
        async with server:
            await ended.wait()

    def work() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(run())

    thread = threading.Thread(target=work, name="metrics", daemon=True)
    thread.start()

    def stop() -> None:
        loop.call_soon_threadsafe(ended.set)
        thread.join()

    return Server(addresses.show(host, bound), stop)
