"""The dashboard: who may see it, what it says, and that looking changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from namespaces import place
from switches import LEARNING, between, frame, ports
from tidegate import Network, TidegateError, p4
from tidegate.backends import common
from tidegate.experiments import run
from tidegate.switch.running import LiveSwitch

pytest.importorskip("starlette", reason='needs pip install "tidegate[view]"')
pytest.importorskip("uvicorn", reason='needs pip install "tidegate[view]"')
sync_client = pytest.importorskip("websockets.sync.client", reason='needs pip install "tidegate[view]"')

from tidegate.view.finished import Finished  # noqa: E402
from tidegate.view.running import Running  # noqa: E402
from tidegate.view.server import Server  # noqa: E402
from tidegate.view.switching import Switching  # noqa: E402

EVIL = "<img src=x onerror=alert(1)>"


def read(frame: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    (length,) = struct.unpack_from("<I", frame)
    header = json.loads(frame[4 : 4 + length])
    at, columns = 4 + length, {}
    for name, count in header["columns"]:
        columns[name] = np.frombuffer(frame, "<f4", count, at)
        at += 4 * count
    assert at == len(frame)
    return header, columns


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("view") / "run"
    run("reference.dumbbell", {"flows": (1, 2), "duration_s": 2.1}, seeds=[1], quick=True, out=out)
    return out


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    with Server(Finished(folder)) as made:
        for _ in range(100):
            if made._server.started:
                break
            time.sleep(0.02)
        yield made


def status(url: str, **headers: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.headers


def test_only_who_has_the_token_sees_it_and_only_from_here(server: Server) -> None:
    base = f"http://127.0.0.1:{server.port}"
    code, headers = status(server.url)
    assert code == 200
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
    assert status(f"{base}/")[0] == 403
    assert status(f"{base}/?token=x")[0] == 403
    assert status(server.url, Host="evil.example")[0] == 403
    assert status(server.url, Origin="http://evil.example")[0] == 403
    assert status(f"{base}/assets/view.js")[0] == 200
    assert status(f"{base}/assets/__init__.py")[0] == 404
    assert status(f"{base}/assets/..%2fplots.py")[0] == 404


@pytest.mark.parametrize(
    ("token", "origin"), [("", "own"), ("wrong", "own"), ("right", "http://evil.example"), ("right", None)]
)
def test_a_stream_needs_the_token_and_this_page_s_origin(
    server: Server, token: str, origin: str | None
) -> None:
    given = server.token if token == "right" else token
    place = f"ws://127.0.0.1:{server.port}/stream?token={given}"
    with (
        pytest.raises(Exception, match="403"),
        sync_client.connect(place, origin=f"http://127.0.0.1:{server.port}" if origin == "own" else origin),
    ):
        pass


def stream(server: Server) -> Any:
    origin = f"http://127.0.0.1:{server.port}"
    return sync_client.connect(f"ws://127.0.0.1:{server.port}/stream?token={server.token}", origin=origin)


def test_a_finished_run_and_its_cases(server: Server) -> None:
    with stream(server) as socket:
        about = json.loads(socket.recv(timeout=5))
        assert about["cases"] == ["n1, seed 1", "n2, seed 1"]
        _, columns = read(socket.recv(timeout=5))
        assert len(columns["flow goodput_mbps"]) == len(about["flows"]) == 1
        assert about["charts"][0]["title"] == "Goodput"
        # What makes no sense is not answered, and harms nothing.
        for nonsense in ("null", "[]", "{", '{"case": 99}', '{"case": "x"}', '{"case": true}'):
            socket.send(nonsense)
        socket.send('{"case": 1}')
        assert len(json.loads(socket.recv(timeout=5))["flows"]) == 2
        read(socket.recv(timeout=5))


def test_a_port_that_is_taken(server: Server, folder: Path) -> None:
    with pytest.raises(TidegateError, match="give another one with --view-port"):
        Server(Finished(folder), server.port)


def dumbbell() -> Network:
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="20 Mbit/s", delay="5 ms", queue="50 packets")
    net.tcp(a, b)
    net.tcp(a, b, start="100 ms", size="200 kB")
    net.record("100 ms", queues=[link])
    return net


def test_looking_changes_nothing_and_pause_and_step_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.view.running.PERIOD_S", 0.01)
    plain = dumbbell().run("2 s", progress=False)
    watcher = Running()
    watcher.command({"pause": True})
    results: list[Any] = []

    def work() -> None:
        results.append(dumbbell().run("2 s", progress=False))

    def at() -> dict[str, Any]:
        time.sleep(0.15)
        _, frame = watcher.frame()
        assert frame is not None
        return read(frame)[0]

    with common.watching(watcher):
        thread = threading.Thread(target=work)
        thread.start()
        try:
            assert at()["paused"]
            assert at()["t"] == 0
            watcher.command({"trace": 0})
            watcher.command({"step": "250 ms"})
            now = at()
            assert (now["t"], now["paused"]) == (0.25, True)
            packets = now["trace"]["packets"]
            assert packets
            assert packets[-1][0] <= 0.25
            assert {p[1] for p in packets} == {"10000 > 26000", "26000 > 10000"}
            with pytest.raises(ValueError, match="99"):
                watcher.command({"trace": 99})
            with pytest.raises(ValueError, match="the unit is missing"):
                watcher.command({"step": "1"})
        finally:
            watcher.command({"pause": False})
            thread.join(20)
    assert results[0].flows.equals(plain.flows)
    assert results[0].flow_samples.equals(plain.flow_samples)
    assert results[0].queue_samples.equals(plain.queue_samples)
    header, columns = read(watcher.frame()[1] or b"")
    assert header["ended"]
    assert len(columns["flow rate_mbps"]) == 2
    assert len(columns["queue packets"]) == 2


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=chromium, args=["--disable-gpu", "--no-first-run"])
        yield made
        made.close()


@pytest.mark.slow
def test_in_a_browser(browser: Any, server: Server) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(server.url)
    page.wait_for_selector(".chart canvas")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.select_option("#case", index=1)
    page.wait_for_selector("#flows tbody tr >> nth=1")
    page.fill("#find", "nothing has this name")
    assert page.locator("#flows tbody tr").count() == 0
    assert errors == []


@pytest.mark.slow
def test_hostile_names_and_many_flows_in_a_browser(browser: Any) -> None:
    class Source(Running):
        def begin_with(self, hosts: int, flows: int) -> None:
            self._epoch = 1
            names = [f"{EVIL} h{n} -> s" for n in range(hosts)]
            self._about = {
                "title": EVIL,
                "kind": "running",
                "until_s": 1,
                "nodes": [["s", "switch"], *([f"{EVIL} h{n}", "host"] for n in range(hosts))],
                "links": [[n + 1, 0, names[n], ""] for n in range(hosts)],
                "queues": names,
                "flows": [f"{EVIL} {n}" for n in range(flows)],
                "rates_mbps": [1.0] * 2 * hosts,
            }

        def tick(self, number: int, hosts: int, flows: int) -> None:
            from tidegate.view.frames import pack

            header = {
                "t": number / 10,
                "fresh": True,
                "paused": False,
                "ended": False,
                "notes": {EVIL: number},
                "trace": None,
            }
            flow = {
                f"flow {name}": np.random.rand(flows) for name in ("rate_mbps", "cwnd_packets", "srtt_ms")
            }
            queue = {
                f"queue {name}": np.random.rand(hosts)
                for name in ("rate_mbps", "packets", "delay_ms", "dropped")
            }
            self._frame, self._number = pack(header, flow | queue), number

    source = Source()
    source.begin_with(200, 10_000)
    page = browser.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append("a dialog"))
    with Server(source) as server:
        source.tick(1, 200, 10_000)
        page.goto(server.url)
        for number in range(2, 32):
            source.tick(number, 200, 10_000)
            page.wait_for_timeout(60)
        page.wait_for_selector("#flows tbody tr >> nth=39")
        page.wait_for_selector(".chart canvas")
        assert page.locator("img").count() == 0
        assert page.inner_text("h1") == EVIL
        assert int(page.evaluate("document.documentElement.dataset.frames")) > 5
    assert [one for one in errors if "WebSocket" not in one] == []


@pytest.mark.live
@pytest.mark.untimed
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_switch_that_runs() -> None:
    with place(2) as two:
        live = LiveSwitch(p4.compile(LEARNING), ports(two, "auto"))
        between(live)
        with live:
            shown = Switching(live, "learning")
            live.notes["a note"] = 3.0
            for _ in range(20):
                two.hosts[0].send(frame(1, 2, 1000))
                two.hosts[1].receive(1)
            shown.update()
            header, columns = read(shown.frame()[1] or b"")
            _, about = shown.about()
    rates = dict(zip(about["ports"], columns["port packets_per_s"], strict=True))
    assert rates["p1: received"] == rates["p2: sent"] > 0
    assert rates["p1: sent"] == rates["p2: received"] == 0
    assert about["queues"] == ["port 1 queue 0", "port 2 queue 0"]
    assert header["notes"] == {"a note": 3.0}
    with pytest.raises(ValueError, match="pause"):
        shown.command({"pause": True})
