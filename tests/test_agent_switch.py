"""`tidegate agent` and its switches: what its packets say of the connection, and switches that start anew."""

from __future__ import annotations

import socket

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

from live import needs_agents
from namespaces import needs_root
from paced_hosts import GIVEN, limit, net, paced_at
from switches import wait_for


@needs_root
@needs_agents
def test_an_answer_acknowledges_no_more_than_tcp() -> None:
    with net() as made:
        server = made.server()
        made.agent("--no-lend")
        own = made.connect()
        there = server.accept()[0]
        made.stack.callback(there.close)
        wait_for(paced_at(own, GIVEN))
        # Data is acknowledged late from now on.
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        for _ in range(5):
            there.send(bytes(100))
            # A notice for both comes to the first.
            other = made.connect()
            wait_for(paced_at(own, GIVEN / 2))
            other.close()
            server.accept()[0].close()
            wait_for(paced_at(own, GIVEN))
            own.recv(100)
        frames = [Ether(one) for one in made.at.hosts[1].receive(1000, 0.3)]
        acks = [one for one in frames if TCP in one and one[TCP].sport == own.getsockname()[1]]
        said, answers = 0, 0
        for one in acks:
            if one[IP].ihl == 5:
                said = one[TCP].ack
            elif said:
                answers += 1
                assert (said - one[TCP].ack) % 2**32 < 2**31
        assert answers >= 5


@needs_root
@needs_agents
def test_a_restarted_switch_that_gives_another_rate_is_believed() -> None:
    """It counts its changes from 0 again: from 128 changes before, that looks like the past."""
    with net() as made:
        server = made.server()
        made.live.api.register_write("epoch", [100], 2)
        made.agent("--refresh", "1s", "--timeout", "5s", "--no-lend")
        own = made.connect()
        there = server.accept()[0]
        made.stack.callback(there.close)
        wait_for(paced_at(own, GIVEN))
        wait_for(lambda: made.status()["counts"]["notices"] >= 1)
        made.switch.close()
        made.run_switch()
        (capacity,) = made.live.api.register_read("capacity", 2, 1)
        made.live.api.register_write("capacity", [capacity // 2], 2)

        def half() -> bool:
            own.send(bytes(100))
            there.recv(1000)
            # What it sends until the switch knows it again counts as others' for a while.
            return limit(own) == pytest.approx(GIVEN / 2, rel=0.05)

        wait_for(half, 20)
        assert made.status()["counts"]["stale"] > 0
