"""The dashboard of a live run and of a switch, as commands show them, in a browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from live import needs_iperf3
from namespaces import place
from switches import LEARNING
from test_view_packets import ETHERNET, ipv4, tcp
from viewers import address, browser_in, command, ended, looked, until

FLOOD = "mc_mgrp_create 1\nmc_node_create 0 1 2\nmc_node_associate 1 0\n"
GONE = "the connection is gone: the command has ended, or it runs under another address"


def above_one(cell: Any) -> bool:
    """Whether it is there, and has such a number."""
    text = cell.inner_text() if cell.count() else ""
    return text[:1].isdigit() and float(text) > 1


@pytest.mark.live
@pytest.mark.untimed
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@needs_iperf3
def test_a_live_run_in_a_browser(browser: Any, tmp_path: Path) -> None:
    given = ("schemes=fair", "rates_mbps=20", "base_rtts_ms=10", "duration_s=60")
    words = [word for one in given for word in ("--set", one)]
    run = ("run", "meter.rates", "--backend", "live", *words, "--out", tmp_path / "run")
    with command(*run, "--view") as process:
        made, errors = looked(browser, address(process.stderr), viewport={"width": 390, "height": 800})
        until(lambda: made.inner_text("#state") == "running")
        assert made.title().startswith("meter.rates (live), ")
        # Real hosts do not wait.
        assert made.is_hidden("#controls")
        rate = made.locator("#flows tbody tr >> nth=0 >> td >> nth=1")
        until(lambda: above_one(rate))
        made.locator("#flows tbody button").first.click()
        made.wait_for_selector("#packets tbody tr >> nth=9")
        assert made.inner_text("#chosen") == made.inner_text("#flows tbody button")
        made.wait_for_selector(".chart canvas >> nth=3")
        assert made.evaluate("document.documentElement.scrollWidth") == 390
        assert errors == []
        code, rest = ended(process)
        until(lambda: made.inner_text("#state") == GONE)
        made.close()
    assert code == 130
    assert "Traceback" not in rest


@pytest.mark.live
@pytest.mark.untimed
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_switch_in_a_browser(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "flood.txt").write_text(FLOOD)
    packet = ETHERNET + ipv4(6, tcp() + bytes(1000))
    with place(2) as two:
        there = ("ip", "netns", "exec", two.name)
        words = ("-i", "1@p1", "-i", "2@p2", "--mode", "packet", "--commands", tmp_path / "flood.txt")
        with (
            command("switch", LEARNING, *words, "--view", before=there) as process,
            browser_in(browser, two.name, tmp_path) as inside,
        ):
            made, errors = looked(inside, address(process.stderr), viewport={"width": 390, "height": 800})

            def sent(holds: Any) -> None:
                """Until it holds, packets pass."""
                until(lambda: two.hosts[0].send(packet) or holds())

            row = made.locator("#ports tbody tr", has_text="p1: received")
            sent(lambda: above_one(row.locator("td").nth(2)))
            assert made.title() == "switch learning_switch - Tidegate"
            assert made.is_hidden("#flowing")
            row.locator("button").click()
            sent(lambda: made.locator("#packets tbody tr").count() > 9)
            assert made.inner_text("#chosen") == "p1"
            flow = made.locator("#seen tbody button").first
            assert flow.inner_text() == "TCP 10.0.0.1:5001 > 10.0.0.2:80"
            flow.click()
            sent(lambda: made.inner_text("#chosen") == flow.inner_text())
            assert made.evaluate("document.documentElement.scrollWidth") == 390
            assert errors == []
            code, rest = ended(process)
            until(lambda: made.inner_text("#state") == GONE)
    assert code == 0
    assert "Traceback" not in rest
