"""`tidegate view`, `run --view` and `switch --view` as commands: the address that they print, a message to a reader, SIGTERM; and what
browsers say to a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from namespaces import place
from switches import LEARNING
from tidegate.experiments import run
from tidegate.view.page import Page
from viewers import address, command, ended, stream, until

READER = """
import re, sys
from websockets.sync.client import connect
sys.path.insert(0, sys.argv[1])
from viewers import read
port, token = re.fullmatch(r"http://127\\.0\\.0\\.1:(\\d+)/\\?token=(\\S+)", sys.argv[2]).groups()
origin = f"http://127.0.0.1:{port}"
with connect(f"ws://127.0.0.1:{port}/stream?token={token}", origin=origin, open_timeout=60, close_timeout=0.2) as one:
    about = ""
    while isinstance(message := one.recv(timeout=60), str) or not about:
        about = message if isinstance(message, str) else about
    print(about)
"""


def about(url: str, before: tuple[str, ...] = ()) -> dict[str, Any]:
    """What a reader hears first."""
    words = [*before, sys.executable, "-c", READER, str(Path(__file__).parent), url]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_view_of_a_folder(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run("reference.dumbbell", {"flows": (1,), "duration_s": 2.1}, seeds=[1], quick=True, out=out)
    with command("view", out) as process:
        said = about(address(process.stdout))
        code, rest = ended(process)
    assert (said["kind"], said["cases"]) == ("finished", ["n1, seed 1"])
    assert (code, rest) == (0, "Ctrl-C ends it\n")


@pytest.mark.slow
def test_a_run_that_is_viewed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("run", "reference.dumbbell", "--set", "flows=1", "--set", "duration_s=100000", "--out", out)
    with command(*words, "--view") as process:
        said = about(address(process.stderr))
        assert (said["kind"], len(said["flows"])) == ("running", 1)
        code, rest = ended(process)
    assert code == 130
    assert rest.splitlines()[-1].startswith("interrupted with 0 of 1 runs done; tables up to then are in ")
    # One that is done stays until it is told to end.
    quick = (
        "run",
        "reference.dumbbell",
        "--quick",
        "--set",
        "flows=1",
        "--set",
        "duration_s=3",
        "--out",
        tmp_path / "short",
    )
    with command(*quick, "--view") as process:
        address(process.stderr)
        assert process.stderr is not None
        assert process.stderr.readline() == "the runs are done; Ctrl-C ends the page\n"
        code, rest = ended(process)
    assert code == 0
    assert "Traceback" not in rest


def test_a_signal_that_wakes_nobody_ends_a_page_all_the_same() -> None:
    # As one does that comes between Python's last look for signals and the wait: here another thread takes it.
    text = """if True:
        import signal, threading
        from tidegate.lab.death import handled, interrupting
        from tidegate.view.page import Page
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        with handled(interrupting(), [signal.SIGTERM]), Page() as page:
            page.stay(id, begin=lambda: print("begun", flush=True))
    """
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as made:
        try:
            assert made.stdout is not None
            assert made.stdout.readline() == b"begun\n"
            time.sleep(0.5)
            made.send_signal(signal.SIGTERM)
            assert made.wait(20) == 0
        finally:
            made.kill()


@pytest.mark.live
@pytest.mark.untimed
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_switch_that_is_viewed() -> None:
    with place(2) as two:
        there = ("ip", "netns", "exec", two.name)
        ports = ("-i", "1@p1", "-i", "2@p2", "--mode", "packet")
        with command("switch", LEARNING, *ports, "--view", before=there) as process:
            said = about(address(process.stderr), there)
            code, rest = ended(process)
    assert said["kind"] == "switch"
    assert said["queues"] == ["port 1 queue 0", "port 2 queue 0"]
    assert code == 0
    assert "Traceback" not in rest


def test_a_run_hears_so_many_commands_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a browser that says much, the newest."""
    got: list[bytes] = []
    with Page() as page, stream(page) as one:
        page.begin({"kind": "running", "flows": []})
        until(lambda: page.heard() is not None and page.readers == 1)
        receive = page._channel.receive

        def counted() -> list[bytes]:
            new = receive()
            got.extend(new)
            return new

        monkeypatch.setattr(page._channel, "receive", counted)
        began = time.monotonic()
        for number in range(1000):
            one.send(json.dumps({"trace": number}))
        until(lambda: page.heard(0.1).get("trace") == 999)
        assert len(got) <= 50 * (time.monotonic() - began) + 2
        assert len(got) < 1000
