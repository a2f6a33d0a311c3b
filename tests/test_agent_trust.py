"""What `tidegate agent` believes: options with the right key, in bounds, for its own flows, and not too often."""

from __future__ import annotations

import random
import socket
import struct
from pathlib import Path

import pytest

from live import needs_agents
from namespaces import needs_root
from paced_hosts import GIVEN, KEYS, Net, limit, net, paced_at, unlimited
from switches import wait_for
from tidegate.systems.pacing.experiments.attack import checksum
from tidegate.systems.pacing.format import Kind, PacingOption


@needs_root
@needs_agents
def test_keys(tmp_path: Path) -> None:
    good, other = tmp_path / "good.toml", tmp_path / "other.toml"
    good.write_text('keys = ["0123456789abcdef", "1122334455667788"]')
    other.write_text('keys = ["0123456789abcdee", "1122334455667788"]\nsigning = 0')
    for file in (good, other):
        file.chmod(0o600)
    with net(KEYS) as made:
        made.server()
        agent = made.agent("--key-file", str(other))
        own = made.connect()
        assert unlimited(own)()
        own.close()
        assert made.end(agent) == 0
        agent = made.agent("--key-file", str(good))
        own = made.connect()
        assert paced_at(own, GIVEN)()
        # A notice that somebody else has made, and one that has come before.
        attacker = made.at.hosts[1]
        mine, peer = own.getsockname(), own.getpeername()
        forged = PacingOption(Kind.NOTICE, rate=64, weight=1, link=9)
        for check in range(3):
            attacker.send(notice(made, mine, peer, forged, check))
        wait_for(lambda: made.status()["counts"]["bad_check"] == 3)
        assert paced_at(own, GIVEN)()
        right = PacingOption(Kind.NOTICE, rate=10_000, weight=1, link=9).checked(KEYS.values[0], mine, peer)
        attacker.send(notice(made, mine, peer, right))
        wait_for(lambda: limit(own) < 0.3 * GIVEN)


def notice(
    made: Net, mine: tuple[str, int], peer: tuple[str, int], option: PacingOption, check: int | None = None
) -> bytes:
    """A frame with an option, for the first host."""
    data = option.data if check is None else option.data[:7] + check.to_bytes(3)
    return bytes_of(made, mine, peer, b"\x5e\x0c" + data)


def bytes_of(
    made: Net, mine: tuple[str, int], peer: tuple[str, int], options: bytes, flags: int = 0
) -> bytes:
    head = bytes.fromhex(made._macs[1].replace(":", "")) + bytes.fromhex(made._macs[2].replace(":", ""))
    padded = options + bytes(-len(options) % 4)
    total = 40 + len(padded)
    start = struct.pack("!BBHHHBBH", 0x45 + len(padded) // 4, 0, total, 0, 0x4000, 64, 6, 0)
    addresses = socket.inet_aton(peer[0]) + socket.inet_aton(mine[0])
    header = bytearray(start + addresses + padded)
    header[10:12] = checksum(header).to_bytes(2)
    return (
        head
        + b"\x08\x00"
        + bytes(header)
        + struct.pack("!HHIIBBHHH", peer[1], mine[1], 1, 1, 0x50, flags, 0, 0, 0)
    )


@needs_root
@needs_agents
def test_what_comes_is_not_trusted() -> None:
    with net() as made:
        made.server()
        made.agent("--least-rate", "1 Mbit/s", "--most-rate", "20 Mbit/s", "--changes-per-second", "10")
        own = made.connect()
        # More than it is to take.
        assert limit(own) * 8 == pytest.approx(20e6, rel=0.001)
        mine, peer = own.getsockname(), own.getpeername()
        attacker = made.at.hosts[1]
        said = made.status()["counts"]
        assert said["out_of_bounds"] >= 1
        bad = [
            PacingOption(Kind.NOTICE, rate=1000, weight=0, link=9).data,
            bytes([0x90]) + PacingOption(Kind.NOTICE, rate=1000, link=9).data[1:],
        ]
        for data in bad:
            attacker.send(bytes_of(made, mine, peer, b"\x5e\x0c" + data))
        other = PacingOption(Kind.NOTICE, rate=1000, weight=1, link=9)
        attacker.send(notice(made, (mine[0], 9), peer, other))
        wait_for(lambda: made.status()["counts"]["not_ours"] == 1)
        said = made.status()["counts"]
        assert (said["malformed"], said["bad_version"]) == (1, 1)
        # Anything at all.
        dice = random.Random(1)
        for _ in range(600):
            options = bytes([0x5E, 0x0C]) + dice.randbytes(10) if dice.random() < 0.7 else dice.randbytes(40)
            attacker.send(bytes_of(made, mine, peer, options, dice.choice([0, 0, 2, 16, 18])))
        for number in range(60):
            attacker.send(
                notice(
                    made, mine, peer, PacingOption(Kind.NOTICE, rate=100 + number, link=9, sequence=number)
                )
            )
        wait_for(lambda: made.status()["counts"]["too_often"] > 0)
        assert 1e6 * 0.999 <= limit(own) * 8 <= 20e6 * 1.001
        own.send(b"x")
