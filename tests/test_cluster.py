"""Runs as tasks of Dask: with a real scheduler, workers that are killed, and a real SLURM."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from clusters import Process, dask, kill, slurm, slurm_lacks, started, wait_for
from tidegate import TidegateError
from tidegate.experiments.executors import cluster, cluster_options

pytest.importorskip("distributed", reason="needs the extra `cluster`")

pytestmark = pytest.mark.slow
REPEAT = 8
GIVEN = ("reference.dumbbell", "--set", "flows=1,2", "--set", "duration_s=3", "--repeat", str(REPEAT))


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "tidegate.cli", "run", *GIVEN, *map(str, words)]


def tidegate(*words: str | Path, code: int = 0, **env: str) -> str:
    """What a run says on standard error."""
    done = subprocess.run(
        command(*words), capture_output=True, text=True, check=False, env={**os.environ, **env}
    )
    assert done.returncode == code, done.stderr
    return done.stderr


def digests(folder: Path) -> dict[str, str]:
    """Of every file of a run's folder; the folder's name is in its record, where it is left out, and in its report."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.name == "run.json":
            record = json.loads(path.read_text())
            del record["out"]
            found["run.json"] = json.dumps(record)
        elif path.is_file() and path.name != "report.html":
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("serial") / "run"
    tidegate("--out", out)
    found = digests(out)
    assert len(found) > 2 * REPEAT * 5
    return found


@pytest.fixture
def there(tmp_path: Path) -> Iterator[tuple[str, list[Process]]]:
    with dask(tmp_path) as found:
        yield found


def done(out: Path) -> int:
    """How many runs are safe so far."""
    journals = list(out.parent.glob(f".{out.name}.*.part/runs.jsonl"))
    return sum(len(path.read_text().splitlines()) for path in journals)


def test_a_killed_worker_costs_nothing(
    there: tuple[str, list[Process]], serial: dict[str, str], tmp_path: Path
) -> None:
    address, (_, worker, _) = there
    out = tmp_path / "run"
    with started(command("--cluster", address, "--out", out), tmp_path / "log") as process:
        wait_for("two runs", lambda: done(out) >= 2 or process.poll() is not None)
        assert process.poll() is None
        kill(worker)
        assert process.wait(120) == 0, (tmp_path / "log").read_text()
    assert digests(out) == serial
    # The scheduler was started without one.
    assert "dashboard" not in (tmp_path / "log").read_text()


def test_the_dashboard_is_named_if_there_is_one(there: tuple[str, list[Process]]) -> None:
    said: list[str] = []
    with cluster.opened("local", ["n_workers=1", "dashboard_address=127.0.0.1:0"], 1, said.append):
        pass
    (line,) = said
    assert re.fullmatch(r"Dask's dashboard: http://127\.0\.0\.1:\d+/status", line)
    with cluster.opened(there[0], [], 1, said.append):
        pass
    assert said == [line]


def test_without_its_scheduler_a_run_ends_and_goes_on_elsewhere(
    there: tuple[str, list[Process]], serial: dict[str, str], tmp_path: Path
) -> None:
    address, (scheduler, *_) = there
    out = tmp_path / "run"
    with started(command("--cluster", address, "--out", out), tmp_path / "log") as process:
        wait_for("two runs", lambda: done(out) >= 2 or process.poll() is not None)
        kill(scheduler)
        assert process.wait(60) == 1
    *_, last = (tmp_path / "log").read_text().splitlines()
    assert last.startswith(f"the Dask scheduler of {address} has gone, or has cancelled the runs; ")
    assert "the same command with --resume does the others" in last
    record = json.loads((out / "run.json").read_text())
    assert record["interrupted"]
    assert 2 <= len(record["rows"]) < 2 * REPEAT
    tidegate("--out", out, "--resume")
    assert digests(out) == serial


@pytest.mark.live
@pytest.mark.concurrent
@pytest.mark.parametrize("where", [(), ("--cluster", "local")], ids=["here", "on Dask"])
def test_a_file_system_that_gets_full_costs_nothing(
    where: tuple[str, ...], serial: dict[str, str], tmp_path: Path
) -> None:
    """A real one, which somebody else fills when some runs are done."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24M", "tmpfs", disk], check=True)
    try:
        out = disk / "run"
        with started(command(*where, "--out", out), tmp_path / "log") as process:
            wait_for("two runs", lambda: done(out) >= 2 or process.poll() is not None)
            assert process.poll() is None, (tmp_path / "log").read_text()
            with (disk / "others").open("wb", buffering=0) as others, suppress(OSError):
                while others.write(bytes(1 << 16)):
                    pass
            assert process.wait(60) == 1
        last = (tmp_path / "log").read_text().splitlines()[-1]
        assert "No space left on device" in last
        assert "the same command with --resume " in last
        (disk / "others").unlink()
        tidegate("--out", out, "--resume")
        assert digests(out) == serial
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def searching(kind: str, *words: str | Path) -> list[str]:
    """A sweep of 8 runs, or a study of 4 trials in batches of 2, with 4 runs each."""
    what = ["--over", "rates_mbps=10,20", "--over", "mtu=1000,1500"]
    if kind == "tune":
        what = ["--range", "mtu=800:1500", "--set", "rates_mbps=10,20", "--maximise", "goodput_mbps"]
        what += ["--trials", "4", "--batch", "2"]
    what += ["--set", "schemes=plain", "--set", "base_rtts_ms=10", "--set", "duration_s=4", "--repeat", "2"]
    return [sys.executable, "-m", "tidegate.cli", kind, "meter.rates", *what, *map(str, words)]


def study(folder: Path) -> dict[str, str]:
    """What a study's folder has, without the names of places, and without Optuna's times."""
    record = json.loads((folder / "tune.json").read_text())
    del record["out"], record["storage"]
    names = ("trials.csv", "figure.png")
    hashes = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    return {"tune.json": json.dumps(record), **hashes}


@pytest.mark.parametrize("kind", ["sweep", "tune"])
def test_sweeps_and_studies_are_the_same_whoever_is_killed(
    kind: str, there: tuple[str, list[Process]], tmp_path: Path
) -> None:
    pytest.importorskip("optuna", reason="needs the extra `tune`")
    address, (scheduler, worker, _) = there
    found = digests if kind == "sweep" else study
    subprocess.run(searching(kind, "--out", tmp_path / "serial"), check=True)
    serial = found(tmp_path / "serial")
    out = tmp_path / "run"
    # The study's journal is in its folder, and has the batch that is under way alone.
    journals = f".{out.name}.*.part/runs.jsonl" if kind == "sweep" else f"{out.name}/runs.jsonl"

    def runs() -> int:
        found = 0
        for path in tmp_path.glob(journals):
            with suppress(FileNotFoundError):
                found += path.read_text().count('"rows"')
        return found

    def begun(process: Process) -> bool:
        return runs() >= 1 or process.poll() is not None

    with started(searching(kind, "--cluster", address, "--out", out), tmp_path / "log") as process:
        wait_for("a run", lambda: begun(process))
        kill(worker)
        wait_for("two runs", lambda: runs() >= 2 or process.poll() is not None)
        kill(scheduler)
        assert process.wait(60) == 1, (tmp_path / "log").read_text()
    *_, last = (tmp_path / "log").read_text().splitlines()
    assert last.startswith(f"the Dask scheduler of {address} has gone, or has cancelled the runs")
    (tmp_path / "again").mkdir()
    with dask(tmp_path / "again") as (address, (_, worker, _)):
        resuming = searching(kind, "--cluster", address, "--out", out, "--resume")
        with started(resuming, tmp_path / "log") as process:
            wait_for("a run", lambda: begun(process))
            kill(worker)
            assert process.wait(120) == 0, (tmp_path / "log").read_text()
    assert found(out) == serial


GOES = """
import os, signal, sys, time
import distributed
from tidegate.cli import main
owner, name, pid = getattr(distributed, sys.argv[1]), sys.argv[2], int(sys.argv[3])
asked, left = getattr(owner, name), [3]
def without(self, *given, **named):
    left[0] -= 1
    if not left[0]:
        os.killpg(pid, signal.SIGKILL)
        client = getattr(self, "client", self)
        while client.status == "running":
            time.sleep(0.01)
    return asked(self, *given, **named)
setattr(owner, name, without)
sys.argv = ["tidegate", *sys.argv[4:]]
main()
"""


@pytest.mark.parametrize("when", [("Future", "result"), ("Client", "submit")])
def test_the_scheduler_may_go_at_any_step(
    when: tuple[str, str], there: tuple[str, list[Process]], tmp_path: Path
) -> None:
    address, (scheduler, *_) = there
    words = command("--cluster", address, "--out", tmp_path / "run")[3:]
    done = subprocess.run(
        [sys.executable, "-c", GOES, *when, str(scheduler.pid), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert f"the Dask scheduler of {address} has gone" in done.stderr.splitlines()[-1]


def test_an_interrupt_keeps_what_is_done_and_frees_the_workers(
    there: tuple[str, list[Process]], serial: dict[str, str], tmp_path: Path
) -> None:
    address, _ = there
    out = tmp_path / "run"
    with started(command("--cluster", address, "--out", out), tmp_path / "log") as process:
        wait_for("two runs", lambda: done(out) >= 2 or process.poll() is not None)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
    *_, last = (tmp_path / "log").read_text().splitlines()
    assert last.startswith("interrupted with ")
    # On the same workers, which are free again.
    tidegate("--out", out, "--resume", "--cluster", address)
    assert digests(out) == serial


OTHER = """
import sys
from tidegate.cli import main
from tidegate.experiments.executors import cluster
there = {**cluster.versions(), "polars": "0.1"}
cluster.versions = lambda: there
sys.argv = ["tidegate", *sys.argv[1:]]
main()
"""
BROKEN = """
import errno, pathlib, sys
from tidegate.cli import main
from tidegate.experiments import folder
write, left = folder.Work.write_files, [3]
def full(*given):
    left[0] -= 1
    if not left[0]:
        with folder._writing(pathlib.Path("out")):
            raise OSError(errno.ENOSPC, "No space left on device")
    write(*given)
folder.Work.write_files = full
sys.argv = ["tidegate", *sys.argv[1:]]
main()
"""


def test_other_versions_and_a_full_disk_end_it_with_one_message(
    there: tuple[str, list[Process]], tmp_path: Path
) -> None:
    address, _ = there

    def last(script: str, out: Path) -> str:
        words = command("--cluster", address, "--out", out)[3:]
        done = subprocess.run(
            [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr.splitlines()[-1]

    said = last(OTHER, tmp_path / "other")
    assert said.startswith("worker tcp://127.0.0.1:")
    assert "polars" in said
    assert said.endswith("instead of 0.1; install the same there")
    assert not (tmp_path / "other").exists()
    said = last(BROKEN, tmp_path / "full")
    assert "No space left on device; 2 of 16 runs are done and in" in said
    assert len(json.loads((tmp_path / "full" / "run.json").read_text())["rows"]) == 2


def test_a_scheduler_without_tidegate_is_named(tmp_path: Path) -> None:
    with dask(tmp_path, 1, without="tidegate") as (address, _):
        said = tidegate("--cluster", address, "--out", tmp_path / "run", code=1)
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith(
        f"the Dask scheduler of {address} cannot read the runs: its environment has no Tidegate "
    )


KILLS = """
import os, signal, time
from matplotlib.figure import Figure
from tidegate.experiments import Case, Plan
from tidegate.network import Network

def row(result):
    if result.seed == 2 and not os.path.exists({harmless!r}):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.3)
    return {{"x": result.end_s}}

def mine(duration_ms: int = 100):
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="10 Mbit/s", delay="5 ms")
    net.tcp(a, b)
    return Plan([Case("one", net, f"{{duration_ms}} ms", row)], lambda rows: [], lambda runs: Figure())
"""


@pytest.mark.parametrize(("workers", "threads"), [(2, 1), (1, 4)])
def test_a_run_that_kills_its_workers_is_left_out_and_named(
    tmp_path: Path, workers: int, threads: int
) -> None:
    harmless = tmp_path / "harmless"
    (tmp_path / "my.py").write_text(KILLS.format(harmless=str(harmless)))
    words = [sys.executable, "-m", "tidegate.cli", "run", f"{tmp_path}/my.py:mine", "--repeat", "4"]
    words += ["--out", str(tmp_path / "run")]
    with dask(tmp_path, workers, threads=threads, nanny=True) as (address, _):
        done = subprocess.run([*words, "--cluster", address], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "one, seed 2: 4 workers died running it" in done.stderr
    rows = json.loads((tmp_path / "run" / "run.json").read_text())["rows"]
    assert sorted(row["seed"] for row in rows) == [1, 3, 4]
    # The others were there when workers died, too: with four threads at each death.
    assert done.stderr.count("workers died") == 1
    harmless.touch()
    done = subprocess.run([*words, "--resume"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "run" / "run.json").read_text())["rows"]
    assert [row["seed"] for row in rows] == [1, 2, 3, 4]


LATE = """
from matplotlib.figure import Figure
from tidegate.experiments import Case, Plan
from tidegate.network import Network

def mine(duration_ms: int = 100):
    from sub.late import RATE
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate=RATE, delay="5 ms")
    net.tcp(a, b)
    case = Case("one", net, f"{duration_ms} ms", lambda result: {"x": result.end_s})
    return Plan([case], lambda rows: [], lambda runs: Figure())
"""


def test_an_experiment_that_imports_from_below_when_it_is_called(
    there: tuple[str, list[Process]], tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "late.py").write_text("RATE = '10 Mbit/s'\n")
    (tmp_path / "my.py").write_text(LATE)
    words = [sys.executable, "-m", "tidegate.cli", "run", f"{tmp_path}/my.py:mine"]
    out = ["--out", str(tmp_path / "run"), "--cluster", there[0]]
    done = subprocess.run([*words, *out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_workers_need_not_have_the_file_of_a_parameter(
    there: tuple[str, list[Process]], tmp_path: Path
) -> None:
    """It is relative to a folder that is not theirs."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "my.trace").write_text("".join(f"{at}\n" for at in range(2, 1001, 2)))
    words = [sys.executable, "-m", "tidegate.cli", "run", "reference.scenarios", "--set", "trace=my.trace"]
    words += ["--set", "scenarios=trace", "--set", "schemes=fifo", "--repeat", "2", "--out"]
    for more in (["serial"], ["cluster", "--cluster", there[0]]):
        done = subprocess.run([*words, *more], capture_output=True, text=True, check=False, cwd=own)
        assert done.returncode == 0, done.stderr
    assert digests(own / "cluster") == digests(own / "serial")


def test_ctrl_c_in_a_terminal_ends_workers_that_were_started_for_the_run(
    serial: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    local = ("--cluster", "local", "--cluster-option", "n_workers=2", "--out", out)
    with started(command(*local), tmp_path / "log") as process:
        wait_for("two runs", lambda: done(out) >= 2 or process.poll() is not None)
        # It goes to the workers too.
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
    said = (tmp_path / "log").read_text()
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("interrupted with ")
    tidegate(*local, "--resume")
    assert digests(out) == serial


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cluster", "tcp://127.0.0.1:1"), "no Dask scheduler answers at tcp://127.0.0.1:1: "),
        (("--cluster", "nowhere"), "--cluster nowhere: give local, slurm, or a scheduler's address"),
        (("--cluster-option", "n_workers=2"), "--cluster-option is for --cluster; give it too"),
        (
            ("--cluster", "tcp://127.0.0.1:1", "--cluster-option", "n_workers=2"),
            "--cluster-option n_workers is for local and slurm",
        ),
        (("--cluster", "local", "--cluster-option", "n_workers"), "write it as name=value"),
        (
            ("--cluster", "local", "--cluster-option", "foo=1"),
            "--cluster-option foo=1: local has no such setting; known: ",
        ),
    ],
)
def test_wrong_clusters(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    wrong = tidegate(
        *words, "--out", tmp_path / "run", code=1, DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="2s"
    )
    assert said in wrong.splitlines()[-1]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("greeting", "said"),
    [
        (b"", "nothing that a scheduler says has come in 2 s"),
        (b"SSH-2.0-OpenSSH_9.2\r\n" + bytes(64), "what answers there is no scheduler of Dask's"),
    ],
)
def test_who_answers_and_is_no_scheduler_is_refused(greeting: bytes, said: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken: list[socket.socket] = []

        def answer() -> None:
            with suppress(OSError):
                while True:
                    taken.append(server.accept()[0])
                    taken[-1].sendall(greeting)

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        refused = tidegate(
            "--cluster",
            address,
            "--out",
            tmp_path / "run",
            code=1,
            DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="2s",
        )
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for one in taken:
            one.close()
    assert f"no Dask scheduler answers at {address}: {said}; start one" in refused.splitlines()[-1]


@pytest.mark.parametrize("where", ["local", "slurm"])
def test_without_cryptography_there_is_one_message(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(TidegateError) as refused, cluster.opened(where, [], 1, print):
        pass
    assert str(refused.value) == (
        f"--cluster {where} makes a TLS key of its own, which needs the package cryptography: "
        'pip install "tidegate[cluster]"'
    )


def test_nobody_without_the_key_gets_to_a_local_cluster() -> None:
    from distributed import Client
    from distributed.security import Security

    with cluster.opened(
        "local", ["n_workers=1", "dashboard_address=127.0.0.1:0"], 1, lambda _: None
    ) as opened:
        known = opened.client.scheduler_info()
        (worker,) = known["workers"].values()
        for address in (known["address"], worker["nanny"], *known["workers"]):
            assert address.startswith("tls://127.0.0.1:")
        plain = known["address"].replace("tls://", "tcp://")
        for at, key in ((known["address"], Security.temporary()), (plain, None)):
            with pytest.raises(OSError, match=r"Timed out|does not match|closed"):
                Client(at, security=key, timeout=1, set_as_default=False)
        # Who does not look at their certificate is not let in either.
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        for address in (known["address"], worker["nanny"], *known["workers"]):
            host, _, port = address.removeprefix("tls://").rpartition(":")
            with (
                socket.create_connection((host, int(port)), 10) as plainly,
                pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"),
                trusting.wrap_socket(plainly) as private,
            ):
                private.recv(1)
        assert opened.client.submit(sum, [1, 2]).result(timeout=20) == 3


@pytest.mark.parametrize(
    ("address", "refused"),
    [
        ("tcp://192.0.2.1:8786", True),
        ("tcp://dask.example:8786", True),
        ("ws://[2001:db8::1]:8786", True),
        ("tcp://[::1", True),
        ("tls://192.0.2.1:8786", False),
        ("tcp://127.0.0.1:8786", False),
        ("tcp://localhost:8786", False),
        ("tcp://[::1]:8786", False),
    ],
)
def test_a_scheduler_elsewhere_without_tls_needs_consent(address: str, refused: bool) -> None:
    with cluster._cluster(address, {"insecure": True}, 1) as at:
        assert at == address
    if refused:
        with (
            pytest.raises(TidegateError, match=r"without TLS.*--cluster-option insecure=true"),
            cluster._cluster(address, {}, 1),
        ):
            pass
    else:
        with cluster._cluster(address, {}, 1) as at:
            assert at == address


def test_settings_are_read() -> None:
    assert cluster_options.parsed("jobs=4") == ("jobs", 4)
    assert cluster_options.parsed("memory=4GB") == ("memory", "4GB")
    assert cluster_options.parsed(f"jobs={'1' * 5000}") == ("jobs", "1" * 5000)
    assert cluster_options.parsed("silent=true") == ("silent", True)
    with pytest.raises(TidegateError, match="write it as name=value"):
        cluster_options.parsed("a b=1")


@pytest.mark.parametrize(
    ("where", "options", "said"),
    [
        ("local", ["n_worker=2"], "n_worker=2: local has no such setting; did you mean 'n_workers'"),
        ("local", ["n_workers=x"], "n_workers=x: n_workers is a whole number from 1 on"),
        ("local", ["n_workers=0"], "n_workers=0: n_workers is a whole number from 1 on"),
        ("local", ["n_workers=1", "n_workers=2"], "n_workers=2: n_workers is given twice"),
        ("local", ["processes=true"], "processes=True: local has no such setting"),
        ("slurm", ["jobs=1.5"], "jobs=1.5: jobs is a whole number from 1 on"),
        ("slurm", ["security=false"], "security=False: slurm has no such setting"),
        ("slurm", ["queu=short"], "queu=short: slurm has no such setting; did you mean 'queue'"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_starts(
    where: str, options: list[str], said: str
) -> None:
    pytest.importorskip("dask_jobqueue", reason="needs the extra `cluster`")
    with pytest.raises(TidegateError) as raised:
        cluster_options.read(where, options)
    assert str(raised.value).startswith(f"--cluster-option {said}")


def test_the_settings_of_the_page_are_known() -> None:
    pytest.importorskip("dask_jobqueue", reason="needs the extra `cluster`")
    page = (Path(__file__).parent.parent / "docs" / "cluster.md").read_text()
    (row,) = re.findall(r"^\| `slurm` \|.*$", page, re.M)
    names = re.findall(r"`([a-z_]+)`", row)[1:]
    assert "queue" in names
    assert cluster_options.read("slurm", [f"{name}=1" for name in names]).keys() == set(names)


def test_slurm_runs_it_and_a_cancelled_job_costs_nothing(serial: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue", reason="needs the extra `cluster`")
    if why := slurm_lacks():
        pytest.skip(why)
    out = tmp_path / "run"
    settings = {"jobs": 2, "queue": "debug", "interface": "lo", "memory": "1GB", "walltime": "00:10:00"}
    settings["log_directory"] = str(tmp_path)
    options = [word for name, value in settings.items() for word in ("--cluster-option", f"{name}={value}")]
    with slurm(tmp_path) as env:
        where = ("--cluster", "slurm", *options, "--out", out)
        with started(command(*where), tmp_path / "log", **env) as process:
            wait_for("two runs", lambda: done(out) >= 2 or process.poll() is not None)
            assert process.poll() is None, (tmp_path / "log").read_text()
            jobs = subprocess.run(
                ["squeue", "-h", "-o", "%i", "-t", "running"],
                env={**os.environ, **env},
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
            script = ["scontrol", "write", "batch_script", jobs[0], "-"]
            written = subprocess.run(
                script, env={**os.environ, **env}, capture_output=True, text=True, check=True
            )
            assert "dask_worker tls://" in written.stdout
            (key,) = re.findall(r"--tls-key (\S+)", written.stdout)
            assert Path(key).stat().st_mode & 0o777 == 0o600
            subprocess.run(["scancel", jobs[0]], env={**os.environ, **env}, check=True)
            assert process.wait(120) == 0, (tmp_path / "log").read_text()
        refused = [word.replace("queue=debug", "queue=absent") for word in where[:-1]]
        said = tidegate(*refused, tmp_path / "refused", code=1, **env)
        assert "SLURM does not accept the job: " in said
        assert "invalid partition" in said
    assert digests(out) == serial
