"""The dashboard of what runs between real interfaces."""

from __future__ import annotations

import os

import numpy as np
import pytest

from live import needs_iperf3
from namespaces import place
from switches import LEARNING, between, frame, ports
from tidegate import Network, p4
from tidegate.switch.running import LiveSwitch
from tidegate.view.page import Page
from tidegate.view.switching import Switching
from viewers import InThread, Seen, Shown


@pytest.mark.live
@pytest.mark.untimed
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_switch_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.view.switching.WORTH", 0)
    with place(2) as two:
        live = LiveSwitch(p4.compile(LEARNING), ports(two, "auto"))
        between(live)
        with live:
            shown, page = Switching(live, "learning"), Shown()
            live.notes["a note"] = 3.0
            shown.update(page)  # type: ignore[arg-type]
            for _ in range(20):
                two.hosts[0].send(frame(1, 2, 1000))
                two.hosts[1].receive(1)
            shown.update(page)  # type: ignore[arg-type]
    about, (header, columns) = page.about, page.shown[-1]
    rates = dict(zip(about["ports"], columns["port packets_per_s"], strict=True))
    assert rates["p1: received"] == rates["p2: sent"] > 0
    assert rates["p1: sent"] == rates["p2: received"] == 0
    assert about["queues"] == ["port 1 queue 0", "port 2 queue 0"]
    assert header["notes"] == {"a note": 3.0}


@pytest.mark.live
@pytest.mark.untimed
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@needs_iperf3
def test_a_live_run() -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="20 Mbit/s", delay="5 ms", queue="50 packets")
    net.tcp(a, b, label="endless")
    net.tcp(a, b, size="100 kB", label="short")
    net.udp(a, b, rate="2 Mbit/s", pattern="poisson", label="datagrams")
    with Page() as page, Seen(page) as seen:
        thread = InThread(page, lambda: net.run("4 s", backend="live", progress=False))
        seen.until(lambda header: header["t"] > 0.5)
        assert seen.about["kind"] == "live"
        # Real hosts do not wait.
        seen.say(pause=True, step="1 ms", trace=0)
        header = seen.until(lambda header: header["trace"] and header["trace"]["packets"])
        assert {packet[1] for packet in header["trace"]["packets"]} <= {"10000 > 26000", "26000 > 10000"}
        seen.until(lambda header: header["t"] > 2.5 and not np.isnan(seen.columns["flow rate_mbps"]).any())
        endless, short, datagrams = seen.columns["flow rate_mbps"]
        assert endless > 1
        assert (short, datagrams > 0.5) == (0, True)
        assert seen.columns["flow cwnd_packets"][0] > 1
        assert 10 < seen.columns["flow srtt_ms"][0] < 1000
        assert seen.columns["queue rate_mbps"][0] > endless
        assert seen.until(lambda header: header["ended"])["paused"] is False
        thread.join(60)
    assert thread.result.end_s == 4
    assert thread.result.flows["bytes_received"].min() > 0
