"""Dashboards and alert rules: their PromQL, by promtool and by a Prometheus that scrapes a running switch."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import Run
from live import needs_agents
from namespaces import Place, needs_root, place, within
from paced_hosts import listening, net
from switches import LEARNING, between, frame, ports
from tidegate import grafana, p4
from tidegate.control.quantities import QUANTITIES
from tidegate.switch.metrics import serve
from tidegate.switch.running import LiveSwitch
from tidegate.systems.pacing.service.pacer import COUNTERS_HELP

FOLDER = Path(__file__).parent.parent / "python/tidegate/grafana"
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (prometheus)")
IF_ANY = {"dropped", "note", "controller_dropped", "p4runtime_dropped"}
"""What a switch without drops, controllers and P4Runtime does not have."""


def expressions(name: str) -> list[str]:
    board = json.loads((FOLDER / f"{name}.json").read_text())
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def filled(expression: str) -> str:
    """As Grafana sends it."""
    return expression.replace("$__rate_interval", "10s").replace("$instance", ".*")


def metrics(expression: str) -> set[str]:
    return {name.removesuffix("_total") for name in re.findall(r"tidegate_\w+", expression)}


def test_every_metric_exists() -> None:
    there = {f"tidegate_{name}" for name in QUANTITIES}
    there |= {f"tidegate_agent_{name}" for name in (*COUNTERS_HELP, "flows", "rate_bps")}
    asked = [*expressions("switch"), *expressions("agent")]
    asked += re.findall(r"expr: (.*)", (FOLDER / "alerts.yml").read_text())
    assert len(asked) > 30
    for expression in asked:
        assert metrics(expression) <= there, expression


def test_the_command_writes_what_is_in_the_package(tidegate: Run, tmp_path: Path) -> None:
    said = tidegate("grafana", tmp_path / "made")
    written = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert said.out.split() == [str(tmp_path / "made" / name) for name in grafana.FILES]
    assert written == sorted(path.name for path in FOLDER.iterdir() if path.suffix not in (".py", ""))
    for name in written:
        assert (tmp_path / "made" / name).read_bytes() == (FOLDER / name).read_bytes()
    (tmp_path / "file").touch()
    refused = tidegate("grafana", tmp_path / "file")
    assert (refused.code, len(refused.err.splitlines())) == (1, 1)
    assert "the files cannot be written there: " in refused.err


def test_panels_have_numbers_and_places_of_their_own() -> None:
    for name in ("switch", "agent"):
        panels = json.loads((FOLDER / f"{name}.json").read_text())["panels"]
        places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
        assert len(places) == len({panel["id"] for panel in panels}) == len(panels)


@needs_promtool
def test_promtool_accepts_rules_and_the_dashboards_expressions(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": filled(expression)}
        for number, expression in enumerate([*expressions("switch"), *expressions("agent")])
    ]
    (tmp_path / "panels.yml").write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    checked = ["promtool", "check", "rules", str(tmp_path / "panels.yml"), str(FOLDER / "alerts.yml")]
    for command in (checked, ["promtool", "test", "rules", "alerts_test.yml"]):
        done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_seen_to_fire_and_to_be_silent() -> None:
    alerts = set(re.findall(r"- alert: (\w+)", (FOLDER / "alerts.yml").read_text()))
    tests = (FOLDER / "alerts_test.yml").read_text()
    asked = re.findall(r"alertname: (\w+)\n(\s+exp_alerts:)?", tests)
    assert {name for name, fires in asked if fires} == alerts
    assert {name for name, fires in asked if not fires} == alerts


@pytest.fixture
def two() -> Iterator[Place]:
    with place(2) as made:
        yield made


@contextmanager
def scraping(tmp_path: Path, target: str, netns: str | None = None) -> Iterator[Callable[[str], Any]]:
    """A Prometheus with the alert rules that scrapes an address, in a namespace; asks it something. Ends when the block does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    jobs = [{"job_name": "tidegate", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}]
    config = {"rule_files": [str(FOLDER / "alerts.yml")], "scrape_configs": jobs}
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))
    words = [
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    there = [] if netns is None else ["ip", "netns", "exec", netns]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen([*there, "prometheus", *words], cwd=tmp_path, stdout=log, stderr=log)

    def fetch(path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=5) as answer:
            found = json.load(answer)
        assert found["status"] == "success"
        return found["data"]

    def ask(path: str) -> Any:
        assert server.poll() is None, (tmp_path / "log").read_text()
        return fetch(path) if netns is None else within(f"/run/netns/{netns}", lambda: fetch(path))

    try:
        yield ask
    finally:
        server.terminate()
        server.wait(10)


def query(expression: str) -> str:
    return f"query?query={urllib.parse.quote(filled(expression))}"


def after_scrapes(ask: Callable[[str], Any], metric: str, poke: Callable[[], None]) -> None:
    """Until Prometheus has scraped a metric four times; `poke` is called meanwhile."""
    end = time.monotonic() + 40
    while True:
        poke()
        assert time.monotonic() < end
        time.sleep(0.5)
        with suppress(OSError):
            if ask(query(f"count_over_time({metric}[1m]) >= 4"))["result"]:
                return


def answers(ask: Callable[[str], Any], board: str) -> None:
    """Each panel has an answer, and the rules are loaded."""
    assert len(ask("rules")["groups"]) == 2
    for expression in expressions(board):
        if not metrics(expression) & {f"tidegate_{name}" for name in IF_ANY}:
            assert ask(query(expression))["result"], expression


needs_prometheus = pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus")


@pytest.mark.live
@pytest.mark.untimed
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@needs_prometheus
def test_a_prometheus_that_scrapes_a_switch_answers_every_panel(two: Place, tmp_path: Path) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "auto"))
    between(live)

    def poke() -> None:
        two.hosts[0].send(frame(1, 2))
        two.hosts[1].receive(1)

    with live:
        page = serve(live, "127.0.0.1:0")
        try:
            with scraping(tmp_path, page.address) as ask:
                after_scrapes(ask, "tidegate_wakeups_total", poke)
                answers(ask, "switch")
        finally:
            page.stop()


@pytest.mark.slow
@needs_root
@needs_agents
@needs_prometheus
def test_a_prometheus_that_scrapes_an_agent_answers_every_panel(tmp_path: Path) -> None:
    with net() as made:
        made.server()
        agent = made.agent("--metrics-addr", "127.0.0.1:0", until="metrics at")
        made.connect()
        netns = made.at.hosts[0].netns
        with scraping(tmp_path, f"127.0.0.1:{listening(agent.pid, netns)}", netns) as ask:
            after_scrapes(ask, "tidegate_agent_flows", lambda: None)
            answers(ask, "agent")
            flows = ask(query('tidegate_agent_flows{state="paced"}'))["result"]
            assert [one["value"][1] for one in flows] == ["1"]
