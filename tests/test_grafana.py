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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from namespaces import Place, place
from switches import LEARNING, between, frame, ports
from tidegate import p4
from tidegate.control.quantities import QUANTITIES
from tidegate.switch.metrics import serve
from tidegate.switch.running import LiveSwitch
from tidegate.systems.pacing.service.pacer import COUNTERS_HELP

FOLDER = Path(__file__).parent.parent / "examples/grafana"
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


@pytest.fixture
def two() -> Iterator[Place]:
    with place(2) as made:
        yield made


def asked(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=5) as answer:
        found = json.load(answer)
    assert found["status"] == "success"
    return found["data"]


@pytest.mark.live
@pytest.mark.untimed
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus")
def test_a_prometheus_that_scrapes_a_switch_answers_every_panel(two: Place, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "auto"))
    between(live)
    with live:
        page = serve(live, "127.0.0.1:0")
        jobs = [
            {"job_name": "tidegate", "scrape_interval": "1s", "static_configs": [{"targets": [page.address]}]}
        ]
        config = {"rule_files": [str(FOLDER / "alerts.yml")], "scrape_configs": jobs}
        (tmp_path / "prometheus.yml").write_text(json.dumps(config))
        words = [
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with (tmp_path / "log").open("w") as log:
            server = subprocess.Popen(["prometheus", *words], cwd=tmp_path, stdout=log, stderr=log)
        try:
            end = time.monotonic() + 40
            while True:
                two.hosts[0].send(frame(1, 2))
                two.hosts[1].receive(1)
                assert server.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < end, (tmp_path / "log").read_text()
                time.sleep(0.5)
                try:
                    query = urllib.parse.quote("count_over_time(tidegate_wakeups_total[1m]) >= 4")
                    if asked(port, f"query?query={query}")["result"]:
                        break
                except OSError:
                    pass
            assert len(asked(port, "rules")["groups"]) == 2
            for expression in expressions("switch"):
                found = asked(port, f"query?query={urllib.parse.quote(filled(expression))}")["result"]
                if not metrics(expression) & {f"tidegate_{name}" for name in IF_ANY}:
                    assert found, expression
        finally:
            server.terminate()
            server.wait(10)
            page.stop()
