"""The dashboard: who may see it, what it says, and that looking changes nothing."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tidegate import Network, TidegateError, assets
from tidegate.backends import common
from tidegate.backends.build import build
from tidegate.experiments import folder as folders
from tidegate.experiments import run
from tidegate.experiments.executors import Here
from tidegate.experiments.plan import Run
from tidegate.view import frames
from tidegate.view.asking import Asked, understood
from tidegate.view.board import Board
from tidegate.view.channel import Channel
from tidegate.view.finished import Finished
from tidegate.view.page import ENDED, Page
from tidegate.view.running import Running
from tidegate.view.server import Readers
from viewers import InThread, Seen, Shown, closed, looked, read, stream, sync_client, until

EVIL = "<img src=x onerror=alert(1)>\"'&amp;"
LONG = "a name without an end" * 40
RIGHT = "\u0645\u0636\u064a\u0641 \u202e\u05de\u05d0\u05e8\u05d7"
"""Letters from right to left, with a character that turns the direction."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("view") / "run"
    run("reference.dumbbell", {"flows": (1, 2), "duration_s": 2.1}, seeds=[1], quick=True, out=out)
    return out


class Kept(threading.Thread):
    """Hears what readers of a page ask for, as `tidegate view` does."""

    def __init__(self, page: Page, shown: Finished) -> None:
        super().__init__(daemon=True)
        self._page, self._shown, self._end = page, shown, threading.Event()
        shown.begin(page)
        self.start()

    def run(self) -> None:
        while not self._end.is_set():
            self._shown.hear(self._page, self._page.heard(0.05))

    def stop(self) -> None:
        self._end.set()
        self.join()


@pytest.fixture
def page(folder: Path) -> Iterator[Page]:
    with Page() as made:
        kept = Kept(made, Finished(folder))
        yield made
        kept.stop()


def status(url: str, **headers: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.headers


def test_only_who_has_the_token_sees_it_and_only_from_here(page: Page) -> None:
    base = f"http://127.0.0.1:{page.port}"
    code, headers = status(page.url)
    assert code == 200
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
    assert status(f"{base}/")[0] == 403
    assert status(f"{base}/?token=x")[0] == 403
    assert status(page.url, Host="evil.example")[0] == 403
    assert status(page.url, Origin="http://evil.example")[0] == 403
    assert status(f"{base}/assets/view.js")[0] == 200
    assert status(f"{base}/assets/__init__.py")[0] == 404
    assert status(f"{base}/assets/..%2fplots.py")[0] == 404
    # Nobody else's process learns the token from the command line.
    (serving,) = (Path(f"/proc/{page._process.pid}/{name}").read_bytes() for name in ("cmdline",))
    assert page.token.encode() not in serving


@pytest.mark.parametrize(
    ("token", "origin"), [("", "own"), ("wrong", "own"), ("right", "http://evil.example"), ("right", None)]
)
def test_a_stream_needs_the_token_and_this_page_s_origin(page: Page, token: str, origin: str | None) -> None:
    given = page.token if token == "right" else token
    place = f"ws://127.0.0.1:{page.port}/stream?token={given}"
    with (
        pytest.raises(Exception, match="403"),
        sync_client.connect(place, origin=f"http://127.0.0.1:{page.port}" if origin == "own" else origin),
    ):
        pass


def hear(of: Any) -> tuple[dict[str, Any], tuple[dict[str, Any], dict[str, Any]]]:
    """What is shown from now on, and its first message."""
    about = of.recv(timeout=60)
    while not isinstance(about, str):
        about = of.recv(timeout=60)
    first = of.recv(timeout=60)
    while isinstance(first, str):
        about, first = first, of.recv(timeout=60)
    return json.loads(about), read(first)


def test_a_finished_run_and_its_cases(page: Page) -> None:
    with stream(page) as one:
        about, (_, columns) = hear(one)
        assert about["cases"] == ["n1, seed 1", "n2, seed 1"]
        assert len(columns["flow goodput_mbps"]) == len(about["flows"]) == 1
        assert about["charts"][0]["title"] == "Goodput"
        # What makes no sense is not answered, and harms nothing.
        for nonsense in ("null", "[]", "{", '{"case": 99}', '{"case": "x"}', '{"case": true}', "[" * 4000):
            one.send(nonsense)
        one.send('{"case": 1}')
        about, (_, columns) = hear(one)
        assert len(about["flows"]) == len(columns["flow goodput_mbps"]) == 2
    with stream(page) as late:
        assert hear(late)[0]["shown"] == 1


def test_a_run_that_is_being_written_is_shown_as_far_as_it_is(folder: Path, tmp_path: Path) -> None:
    record = folders.read_record(folder)
    runs = folders.runs_of(folder, record)
    out = tmp_path / "run"
    work = folders.Work(out)
    about = {name: record[name] for name in ("experiment", "backend", "parameters", "seeds")}
    work.begin(about)
    shown, page = Finished(out), Shown()
    shown.begin(page)  # type: ignore[arg-type]

    def add(one: Run) -> None:
        work.write_tables(one)
        work.add(one)
        shown.hear(page, {})  # type: ignore[arg-type]

    assert (page.about["written"], page.about["cases"]) == (True, [])
    add(runs[0])
    assert (page.about["written"], page.about["cases"]) == (True, ["n1, seed 1"])
    add(runs[1])
    assert page.about["cases"] == ["n1, seed 1", "n2, seed 1"]
    shown.hear(page, {"case": 1})  # type: ignore[arg-type]
    assert len(page.about["flows"]) == 2
    rows = [row for one in runs for row in one.rows or ()]
    work.finish({**about, "rows": rows, "claims": [], "warnings": []}, b"")
    shown.hear(page, {})  # type: ignore[arg-type]
    assert (page.about["written"], page.about["shown"], len(page.about["flows"])) == (False, 1, 2)
    with pytest.raises(TidegateError, match="does not hold a run"):
        Finished(tmp_path / "nothing")


def test_a_case_that_is_chosen_while_the_run_is_put_in_its_place_is_shown(
    folder: Path, tmp_path: Path
) -> None:
    record = folders.read_record(folder)
    out = tmp_path / "run"
    work = folders.Work(out)
    about = {name: record[name] for name in ("experiment", "backend", "parameters", "seeds")}
    work.begin(about)
    for one in reversed(folders.runs_of(folder, record)):
        work.write_tables(one)
        work.add(one)
    shown, page = Finished(out), Shown()
    shown.begin(page)  # type: ignore[arg-type]
    assert page.about["cases"] == ["n2, seed 1", "n1, seed 1"]
    work.finish({**about, "rows": record["rows"], "claims": [], "warnings": []}, b"")
    shown.hear(page, {"case": 1})  # type: ignore[arg-type]
    assert (page.about["written"], page.about["cases"]) == (False, ["n1, seed 1", "n2, seed 1"])
    assert (page.about["shown"], len(page.about["flows"])) == (0, 1)


def test_numbers_that_are_not_finite_are_null_in_a_message() -> None:
    header, _ = frames.unpack(frames.pack({"notes": {"a": math.nan, "b": 1.5}}, {}))
    assert header["notes"] == {"a": None, "b": 1.5}


@pytest.mark.parametrize(
    ("port", "host", "refused"),
    [
        (80, "localhost", False),
        (80, "127.0.0.1:80", False),
        (80, "evil.example", True),
        (81, "localhost", True),
    ],
)
def test_the_port_of_http_is_not_said_by_browsers(port: int, host: str, refused: bool) -> None:
    readers = Readers(Board(), Asked(), "token", port, 1.0)
    request = SimpleNamespace(headers={"host": host, "origin": f"http://{host}"})
    assert (readers._refused(request) is not None) == refused  # type: ignore[arg-type]


def test_what_is_left_of_a_run_whose_process_is_killed_stays(folder: Path, tmp_path: Path) -> None:
    record = folders.read_record(folder)
    out = tmp_path / "run"
    work = folders.Work(out)
    work.begin({name: record[name] for name in ("experiment", "backend", "parameters", "seeds")})
    one = folders.runs_of(folder, record)[0]
    work.write_tables(one)
    work.add(one)
    shown, page = Finished(out), Shown()
    shown.begin(page)  # type: ignore[arg-type]
    assert work._lock is not None
    os.close(work._lock)
    shown.hear(page, {})  # type: ignore[arg-type]
    assert (page.about["written"], page.about["cases"]) == (False, ["n1, seed 1"])


def test_a_port_that_is_taken(page: Page) -> None:
    with pytest.raises(TidegateError, match="give another one with --view-port"):
        Page(page.port)


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.view.page.PACKAGES", ("a_package_that_nobody_has",))
    with pytest.raises(TidegateError, match=r'pip install "tidegate\[view\]"'):
        Page()


def test_a_reader_is_sent_what_has_changed_since_its_last_message() -> None:
    board = Board()
    assert board.since(0) is None
    board.begin({"flows": ["a", "b", "c"], "queues": ["q"]})
    first = {"flow rate": [1, 2, 3], "queue packets": [5], "chart x": [7, 8]}
    board.update({"t": 1}, {name: np.array(values, "<f4") for name, values in first.items()})
    known = board.number
    header, columns = read(board.since(0) or b"")
    assert header["t"] == 1
    assert {name: values.tolist() for name, values in columns.items()} == first
    assert board.since(known) is None
    for t, row, value in ((2, 1, 20), (3, 2, 30)):
        changed = {"flow at": [row], "flow rate": [value]}
        board.update({"t": t}, {name: np.array(values, "<f4") for name, values in changed.items()})
    header, columns = read(board.since(known) or b"")
    assert header["t"] == 3
    assert columns["flow at"].tolist() == [1, 2]
    assert columns["flow rate"].tolist() == [20, 30]
    assert "chart x" not in columns
    assert read(board.since(0) or b"")[1]["flow rate"].tolist() == [1, 20, 30]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"pause": true, "step": "10 ms", "trace": 3}', {"pause": True, "step": "10 ms", "trace": 3}),
        ('{"pause": 1}', {}),
        ('{"step": 5}', {}),
        (f'{{"step": "{"9" * 41}"}}', {}),
        ('{"trace": 1e9}', {}),
        ('{"trace": -2}', {}),
        ('{"readers": 7, "other": 1}', {}),
        (json.dumps({"watch": [1, 2]}), {"watch": [1, 2]}),
        (json.dumps({"watch": list(range(257))}), {}),
        (json.dumps({"watch": ["1"]}), {}),
        (None, {}),
        ("NaN", {}),
    ],
)
def test_what_readers_ask_for_is_checked(text: str | None, wanted: dict[str, Any]) -> None:
    assert understood(text) == wanted


def test_what_readers_ask_for_is_put_together_until_the_run_hears_it() -> None:
    asked = Asked()
    asked.come(1)
    asked.come(2)
    for number in range(1000):
        asked.hear(1, json.dumps({"step": f"{number} ms", "watch": [number]}))
    asked.hear(2, '{"watch": [5, 999]}')
    assert json.loads(asked.take() or b"") == {"readers": 2, "step": "999 ms", "watch": [999, 5]}
    assert asked.take() is None
    asked.leave(1)
    assert json.loads(asked.take() or b"") == {"readers": 1, "watch": [5, 999]}


def test_a_channel_does_not_wait_for_its_other_end() -> None:
    mine, theirs = socket.socketpair()
    channel = Channel(mine)
    messages = [bytes([n]) * 300_000 for n in range(10)]
    for message in messages:
        channel.send(message)
    assert not channel.flush()
    got, wanted = bytearray(), b"".join(len(one).to_bytes(4, "little") + one for one in messages)
    theirs.setblocking(False)
    while len(got) < len(wanted):
        with suppress(BlockingIOError):
            got += theirs.recv(1 << 20)
        channel.flush()
    assert got == wanted
    assert channel.flush()
    theirs.close()
    assert channel.receive() == []
    assert channel.gone
    channel.send(b"nobody")


def dumbbell() -> Network:
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="20 Mbit/s", delay="5 ms", queue="50 packets")
    net.tcp(a, b)
    net.tcp(a, b, start="100 ms", size="200 kB")
    net.record("100 ms", queues=[link])
    return net


def test_looking_changes_nothing_and_pause_and_step_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    plain = dumbbell().run("2 s", progress=False)
    with Page() as page, Seen(page) as seen:
        thread = InThread(page, lambda: dumbbell().run("2 s", progress=False), paused=True)
        try:
            assert seen.until(lambda header: header["paused"])["t"] == 0
            seen.say(trace=0)
            seen.until(lambda header: header["trace"])
            # Of the trace nothing would be left if this process were killed now.
            assert list(tmp_path.iterdir()) == []
            for step in ("1", "99 days of rain", "250 ms"):
                seen.say(step=step)
            header = seen.until(lambda header: header["t"] > 0 and header["paused"])
            assert header["t"] == 0.25
            packets = header["trace"]["packets"]
            assert packets
            assert packets[-1][0] <= 0.25
            assert {packet[1] for packet in packets} == {"10000 > 26000", "26000 > 10000"}
            seen.say(trace=99)
            rates = seen.columns["flow rate_mbps"]
            assert 1 < rates[0] < 20
            assert seen.columns["queue rate_mbps"][0] > rates[0]
        finally:
            seen.say(pause=False)
            thread.join(60)
        assert seen.until(lambda header: header["ended"])["t"] == 2
        assert len(seen.columns["flow rate_mbps"]) == len(seen.columns["queue packets"]) == 2
        # Who comes when it is over sees how it ended.
        with Seen(page) as late:
            page.heard()
            assert late.until(lambda header: True)["ended"]
            assert np.array_equal(late.columns["flow cwnd_packets"], seen.columns["flow cwnd_packets"], True)
    assert thread.result.flows.equals(plain.flows)
    assert thread.result.flow_samples.equals(plain.flow_samples)
    assert thread.result.queue_samples.equals(plain.queue_samples)


def test_slices_get_short_where_they_end_early(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Network()
    net.link(net.host("a"), net.host("b"), rate="1 Mbit/s", delay="1 ms")
    core, _ = build(net, 1, with_flows=True)
    now_s, reached, took = [0.0], [0], []

    def advance(end: int) -> int:
        # A second for what the core does at most in one call, and that is 1000 ps.
        came = min(end, reached[0] + 1000)
        took.append((came - reached[0]) / 1000)
        now_s[0] += took[-1]
        reached[0] = came
        return came

    monkeypatch.setattr(common.time, "perf_counter", lambda: now_s[0])
    sliced = common.SlicedClock(core, advance, 10**9, None)
    for _ in range(50):
        sliced.wait(10**9)
    assert took[0] == 1
    assert 0 < took[-1] <= 2 * common.SLICE_S


@pytest.mark.slow
def test_a_run_that_is_paused_goes_on_when_the_browser_is_gone() -> None:
    with Page(absent_s=1) as page, Seen(page) as seen:
        thread = InThread(page, lambda: dumbbell().run("1 s", progress=False), paused=True)
        seen.until(lambda header: header["paused"])
        seen.socket.close()
        thread.join(25)
        assert thread.result.end_s == 1


@pytest.mark.slow
def test_many_browsers_and_one_that_does_not_read() -> None:
    with Page() as page, ExitStack() as stack:
        page.begin({"kind": "running", "flows": [str(n) for n in range(20_000)]})
        stack.enter_context(stream(page, max_queue=1))
        seen = stack.enter_context(Seen(page))
        others = [stack.enter_context(stream(page)) for _ in range(6)]
        until(lambda: page.heard() is not None and page.readers == 8)
        with pytest.raises(closed) as refused, stream(page) as ninth:
            ninth.recv(timeout=60)
        assert refused.value.rcvd.code == 4001
        others.pop().close()
        until(lambda: page.heard() is not None and page.readers == 7)
        numbers = np.arange(20_000, dtype="<f4")
        for t in range(1, 40):
            # Some megabytes, which nobody keeps for those that do not read.
            page.show({"t": t}, {f"flow {name}": numbers * t for name in "abcde"})
            page.settle(10)
            assert seen.until(lambda header, t=t: header["t"] == t)
            assert seen.columns["flow e"][3] == 3 * t
        pages = int(Path(f"/proc/{page._process.pid}/statm").read_text().split()[1])
        assert pages * os.sysconf("SC_PAGE_SIZE") < 200 << 20
    assert page._process.poll() is not None


@pytest.mark.slow
def test_a_browser_that_does_not_read_for_long_is_disconnected() -> None:
    with Page(patience_s=1) as page, ExitStack() as stack:
        page.begin({"kind": "running", "flows": [str(n) for n in range(100_000)]})
        stack.enter_context(stream(page, max_queue=1))
        until(lambda: page.heard() is not None and page.readers == 1)
        for t in range(20):
            # As much as no buffer holds.
            page.show({"t": t}, {f"flow {name}": np.full(100_000, t, "<f4") for name in "abcde"})
            page.settle(10)
        until(lambda: page.heard(0.2) is not None and page.readers == 0)


def test_what_is_too_much_of_a_browser(page: Page) -> None:
    with stream(page) as one:
        hear(one)
        one.send(" " * 4097)
        with pytest.raises(closed) as refused:
            list(one)
        assert refused.value.rcvd.code == 1009


def test_connections_that_say_nothing_make_way(page: Page) -> None:
    with stream(page) as shown, ExitStack() as stack:
        hear(shown)
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", page.port))) for _ in range(200)]
        begun = socket.create_connection(("127.0.0.1", page.port))
        stack.enter_context(begun).sendall(b"GET / HTTP/1.1\r\n")
        assert status(page.url)[0] == 200
        # The oldest is closed.
        silent[0].settimeout(20)
        with suppress(ConnectionResetError):
            assert silent[0].recv(1) == b""
        # Who is shown it goes on to be.
        assert shown.ping().wait(20)
    until(lambda: status(page.url)[0] == 200)


def test_what_is_too_much_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MOST_FLOWS", 1), ("MOST_LINKS", 1), ("MOST_TRACE", 1000)):
        monkeypatch.setattr(f"tidegate.view.running.{name}", value)
    monkeypatch.setattr("tidegate.view.running.PERIOD_S", 0)
    net = dumbbell()
    net.link(net.host("c"), net.host("d"), rate="1 Mbit/s", delay="1 ms")
    shown, said = Shown(), [{"trace": 1}, {"trace": 0}]
    shown.heard = lambda timeout_s=None: said.pop() if said else {}  # type: ignore[method-assign]
    with common.watching(Running(shown)):  # type: ignore[arg-type]
        net.run("5 s", progress=False)
    about, (header, columns) = shown.about, shown.shown[-1]
    assert about["left_out"] == "shown are the first 1 of 2 flows and 1 of 2 links"
    assert (len(about["flows"]), len(about["queues"]), len(about["nodes"])) == (1, 2, 2)
    assert (columns["flow at"].tolist(), columns["queue at"].tolist()) == ([0], [0, 1])
    # The one that is not shown cannot be chosen.
    assert header["trace"]["flow"] == 0
    assert header["trace"]["problem"].startswith("the trace has ended")


def test_what_runs_is_said_by_experiment_case_and_seed(tmp_path: Path) -> None:
    shown, titles = Shown(), []
    shown.begin = lambda about: titles.append(about["title"])  # type: ignore[method-assign]
    with common.watching(Running(shown)):  # type: ignore[arg-type]
        given: dict[str, Any] = {"flows": (1, 2), "duration_s": 3}
        run("reference.dumbbell", given, seeds=[7], quick=True, out=tmp_path / "run", executor=Here())
        dumbbell().run("1 s", progress=False)
    assert titles == [
        "reference.dumbbell (sim), n1, seed 7",
        "reference.dumbbell (sim), n2, seed 7",
        "simulation 3",
    ]


def test_a_page_whose_process_is_killed_harms_no_run(capfd: pytest.CaptureFixture[str]) -> None:
    with Page() as page, Seen(page) as seen:
        thread = InThread(page, lambda: dumbbell().run("1 s", progress=False), paused=True)
        seen.until(lambda header: header["paused"])
        page._process.kill()
        thread.join(60)
    assert thread.result.end_s == 1
    assert capfd.readouterr().err.count(ENDED) == 1


def test_a_page_ends_with_a_run_that_is_killed() -> None:
    text = "from tidegate.view.page import Page\nwith Page() as page:\n print(page._process.pid, flush=True)\n page.stay(id)"
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as made:
        assert made.stdout is not None
        serving = int(made.stdout.readline())
        time.sleep(0.5)
        os.kill(serving, 0)
        made.send_signal(signal.SIGKILL)
        made.wait()

    def gone() -> bool:
        # Where nobody is there to take its exit status, it is a zombie.
        stat = Path(f"/proc/{serving}/stat")
        return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"

    until(gone)


def test_of_many_flows_those_that_are_shown_are_looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.view.running.PERIOD_S", 0)
    monkeypatch.setattr("tidegate.view.running.WORTH", 0)
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="100 Mbit/s", delay="1 ms")
    for _ in range(3000):
        net.udp(a, b, rate="10 kbit/s", start="10 s")
    net.udp(a, b, rate="1 Mbit/s", payload=972)

    shown, said = Shown(), [{"watch": [3000, 99_999]}]
    shown.heard = lambda timeout_s=None: said.pop() if said else {}  # type: ignore[method-assign]
    with common.watching(Running(shown)):  # type: ignore[arg-type]
        net.run("2 s", progress=False)
    (before, _), *looks, (_, end) = shown.shown
    assert len(looks) > 5
    last_s, megabits = before["t"], 0.0
    for header, columns in looks:
        assert len(columns["flow at"]) == 1001
        assert columns["flow at"][0] == 3000
        megabits += columns["flow rate_mbps"][0] * (header["t"] - last_s)
        last_s = header["t"]
    assert megabits == pytest.approx(0.972 * last_s, rel=0.05)
    assert set(end["flow at"]) == set(range(3001))


@pytest.mark.slow
def test_in_a_browser(browser: Any, page: Page) -> None:
    made, errors = looked(browser, page.url, viewport={"width": 390, "height": 800})
    made.wait_for_selector(".chart canvas")
    assert made.evaluate("document.documentElement.scrollWidth") == 390
    made.select_option("#case", index=1)
    made.wait_for_selector("#flows tbody tr >> nth=1")
    assert made.title() == "reference.dumbbell (sim), n2, seed 1 - Tidegate"
    made.fill("#find", "nothing has this name")
    until(lambda: made.locator("#flows tbody tr").count() == 0)
    assert errors == []


def many(hosts: int, flows: int) -> dict[str, Any]:
    """What a run with names that are not good ones is."""
    odd = [EVIL, LONG, RIGHT, "", " \n "]
    named = [f"{odd[n % len(odd)]} h{n}" for n in range(hosts)]
    names = [f"{name} -> s" for name in named]
    return {
        "title": f"{EVIL} {RIGHT} {LONG}",
        "kind": "running",
        "until_s": 1,
        "nodes": [["s", "switch"], *([name, "host"] for name in named)],
        "links": [[n + 1, 0, names[n], ""] for n in range(hosts)],
        "queues": names,
        "flows": [f"{odd[n % len(odd)]} {n}" for n in range(flows)],
        "rates_mbps": [1.0] * 2 * hosts,
    }


def tick(page: Page, number: int, hosts: int, flows: int) -> None:
    header = {
        "t": number / 10,
        "paused": False,
        "ended": False,
        "notes": {EVIL: number, LONG: number, RIGHT: number},
        "trace": {"flow": 0, "number": 1, "file": None, "ends": [], "problem": EVIL},
    }
    at = (np.arange(1000) + 1000 * number) % flows
    rng = np.random.default_rng(number)
    flow = {
        f"flow {name}": rng.random(len(at))
        for name in ("rate_mbps", "cwnd_packets", "srtt_ms", "retransmits")
    }
    queue = {f"queue {name}": rng.random(hosts) for name in ("rate_mbps", "packets", "delay_ms", "dropped")}
    page.show(header, {"flow at": at} | flow | queue)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 400])
def test_hostile_names_and_many_flows_in_a_browser(browser: Any, width: int) -> None:
    with Page() as page:
        page.begin(many(200, 10_000))
        tick(page, 1, 200, 10_000)
        made, errors = looked(browser, page.url, viewport={"width": width, "height": 900})
        for number in range(2, 32):
            tick(page, number, 200, 10_000)
            made.wait_for_timeout(60)
        made.wait_for_selector("#flows tbody tr >> nth=39")
        made.wait_for_selector(".chart canvas")
        assert made.locator("img").count() == 0
        assert made.inner_text("h1").startswith(EVIL)
        assert made.inner_text("#problem") == EVIL
        assert made.evaluate("document.documentElement.scrollWidth") == width
        row = made.locator("#flows tbody tr").first.bounding_box()
        assert row["height"] < 60
        # The page goes on drawing; how many frames a second is the machine's.
        until(
            lambda: (
                tick(page, 32, 200, 10_000)
                or int(made.evaluate("document.documentElement.dataset.frames")) > 5
            )
        )
        # What is on the screen is what the page asks for.
        until(lambda: page.heard(0.1).get("watch") or tick(page, 40, 200, 10_000))
    assert [one for one in errors if "WebSocket" not in one] == []


@pytest.mark.slow
def test_by_keyboard_in_a_browser(browser: Any) -> None:
    # Until everything is pressed, the run takes as long as the time that it simulates.
    over, net = threading.Event(), dumbbell()
    for number in range(1, 10_000):
        net.at(f"{10 * number} ms", lambda: over.wait(0.01))
    with Page() as page:
        made, errors = looked(browser, page.url, color_scheme="dark")
        thread = InThread(page, lambda: net.run("100 s", progress=False))
        try:
            made.wait_for_selector("#flows tbody tr >> nth=1")
            assert made.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
            made.focus("#pause")
            made.keyboard.press("Enter")
            until(lambda: made.inner_text("#state").startswith("paused"))
            before = made.inner_text("#time")
            made.keyboard.press("Tab")
            made.keyboard.press("Tab")
            assert made.evaluate("document.activeElement.id") == "step"
            made.keyboard.press("Enter")
            until(lambda: made.inner_text("#time") != before and made.inner_text("#pause") == "Go on")
            made.locator("#flows tbody button").first.focus()
            made.keyboard.press("Space")
            made.wait_for_selector("#traced:not([hidden])")
            made.focus("#step")

            def stepped() -> bool:
                # The flow may wait for a timeout: then a step has no packet of it. One step at a time, or the last ones come when
                # the run is to go on.
                before = made.inner_text("#time")
                made.keyboard.press("Enter")
                until(lambda: made.inner_text("#time") != before and made.inner_text("#pause") == "Go on")
                return bool(made.locator("#packets tbody tr").count())

            until(stepped)
            assert made.locator("#flows tbody tr[aria-selected=true]").count() == 1
            made.focus("#pause")
            made.keyboard.press("Enter")
            until(lambda: not made.inner_text("#state").startswith("paused"))
        finally:
            over.set()
            made.close()
            thread.join(60)
        assert thread.result.end_s == 100
    assert [one for one in errors if "WebSocket" not in one] == []


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_columns_are_shown_with_their_units() -> None:
    text = assets.text("view.js")
    function = text[text.index("function titled(") :].partition("\n}\n")[0] + "\n}\n"
    names = ["queue_delay_ms_p99", "timeouts_per_s", "start_s", "retransmits"]
    script = f"{function}console.log(JSON.stringify({json.dumps(names)}.map(titled)))"
    said = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == ["queue delay p99 (ms)", "timeouts (1/s)", "start (s)", "retransmits"]
