"""Recorded results do not move: the short form of `same_results.py`, and that it would see it if they did."""

import json
import platform
from dataclasses import replace

import pytest

from same_results import NETWORKS, RECORDED, compare, digest_network
from tidegate.network import Network

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
    reason="the digests are of x86-64 with glibc",
)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_has_moved(name: str, threads: int) -> None:
    found = digest_network(name, threads=threads)
    recorded = json.loads(RECORDED.read_text())
    assert compare(found, recorded, lambda key: key.startswith(f"network {name},")) == []


@pytest.mark.parametrize("name", NETWORKS)
def test_a_picosecond_is_seen(name: str) -> None:
    def later(net: Network) -> None:
        link = net.links[0]
        link.forward = replace(link.forward, delay=link.forward.delay + 1)

    assert digest_network(name, later) != digest_network(name)
