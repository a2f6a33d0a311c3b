"""How many of a server's connections one address may have, so that a host that opens all of them keeps nobody out. The addresses that a
host may have all of count as one: those of a network of IPv6, and of the loopback.

gRPC counts connections in all, not those of an address. So the server looks at its own sockets now and then, and ends those of an
address that are beyond its share: first those on which nothing is called, and of these the one that is known for longest. A connection
that the stream of a primary is on is not ended.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import time
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import closing, suppress
from urllib.parse import unquote

Peer = tuple[str, int]
"""Address and port that a connection comes from."""


def peer_of(name: str) -> Peer | None:
    """Of gRPC's name of it; `None`: it is no connection of TCP."""
    scheme, _, rest = unquote(name).partition(":")
    host, _, port = rest.rpartition(":")
    if scheme not in ("ipv4", "ipv6") or not port.isdecimal():
        return None
    return _plain(host.strip("[]")), int(port)


def peers_of(names: Iterable[str]) -> set[Peer]:
    """Of gRPC's names of connections, those of TCP."""
    return {peer for name in names if (peer := peer_of(name)) is not None}


def _plain(host: str) -> str:
    """Without the interface of a link-local address, and of IPv4 addresses in the form of IPv6 the former."""
    return re.sub("%.*", "", host).removeprefix("::ffff:")


def network_of(host: str) -> str:
    """What a host may have all addresses of: the loopback network, 64 bits of IPv6, or the address alone."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_loopback:
        return "loopback"
    return str(ipaddress.ip_network((host, 64), strict=False)) if address.version == 6 else host


class Shares:
    """The connections to one port of this process."""

    def __init__(self, port: int, most: int, total: int, spare: int) -> None:
        """`most`: of one address; `total`: of all, of which `spare` are kept free, but not more than half."""
        self._port, self._most = port, most
        self._total = max(total - spare, total // 2)
        self._since: dict[Peer, float] = {}

    def look(self, called: Collection[Peer], primary: Collection[Peer]) -> None:
        """End what is too much. `called` and `primary` are connections with calls, and with streams of primaries."""
        open_ = self._open()
        now = time.monotonic()
        self._since = {peer: self._since.get(peer, now) for peer in open_}
        by_address: dict[str, list[Peer]] = defaultdict(list)
        for peer in open_:
            by_address[network_of(peer[0])].append(peer)
        for peers in by_address.values():
            if (excess := len(peers) - self._most) > 0:
                peers.sort(key=lambda peer: (peer in called, self._since[peer]))
                for peer in [peer for peer in peers if peer not in primary][:excess]:
                    self._end(open_.pop(peer), peer)
        self._keep_free(open_, {*called, *primary})

    def _keep_free(self, open_: dict[Peer, int], used: Collection[Peer]) -> None:
        """End connections on which nothing is called, of the network that has most of them, if hardly any are free."""
        idle: dict[str, list[Peer]] = defaultdict(list)
        for peer in sorted(open_, key=self._since.__getitem__):
            if peer not in used:
                idle[network_of(peer[0])].append(peer)
        for _ in range(len(open_) - self._total):
            largest = max(idle.values(), key=len, default=[])
            if not largest:
                break
            peer = largest.pop(0)
            self._end(open_[peer], peer)

    def _open(self) -> dict[Peer, int]:
        """The file of each connection."""
        found: dict[Peer, int] = {}
        try:
            files = [int(name) for name in os.listdir("/proc/self/fd")]
        except OSError:
            # All files that this process may have are open: at the next look.
            return found
        # Fewer files than that cannot be too many connections.
        if len(files) > self._most:
            for file in files:
                if (peer := self._peer(file)) is not None:
                    found[peer] = file
        return found

    def _peer(self, file: int) -> Peer | None:
        """Whose connection to the port a file is; `None` if it is something else, or closed by now."""
        try:
            seen = socket.socket(fileno=file)
        except OSError:
            return None
        try:
            if seen.family in (socket.AF_INET, socket.AF_INET6) and seen.getsockname()[1] == self._port:
                host, port = seen.getpeername()[:2]
                return _plain(host), port
        except OSError:
            # It listens, or is cut off.
            pass
        finally:
            seen.detach()
        return None

    def _end(self, file: int, peer: Peer) -> None:
        """gRPC sees the end of a connection, as if its client had gone."""
        with suppress(OSError):
            kept = os.dup(file)
            with closing(socket.socket(fileno=kept)) as ending:
                # Not what has the file's number by now.
                if self._peer(kept) == peer:
                    ending.shutdown(socket.SHUT_RDWR)
