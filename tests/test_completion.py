"""Shell completion, by the command and in real shells, and man pages, read by mandoc."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import Run
from tidegate import systems
from tidegate.cli import completion, man
from tidegate.command_tree import tree

HERE = Path(__file__).resolve().parent.parent
PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tidegate" / "completion.json"


def values(*words: str) -> list[str]:
    return [line.split("\t")[0] for line in completion.candidates(list(words))]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("repl",), ["replay"]),
        (("agent", "st"), ["status"]),
        (("run", "--ba"), ["--backend"]),
        (("run", "--backend", "l"), ["live"]),
        (("run", "--backend=l"), ["--backend=live"]),
        (("run", "--quick", "meter.rat"), ["meter.rates"]),
        (("run", "meter.rates", "--set", "target_"), []),
        (("check", ""), [":files p4"]),
        (("check", "a.p4", ""), []),
        (("stf", "a.p4", ""), [":files stf"]),
        (("stf", "a.p4", "a.stf", "--engine", "j"), ["jit"]),
        (("stf", "-I", ""), [":dirs"]),
        (("plot", ""), [":dirs"]),
        (("claims", "one", ""), [":dirs"]),
        (("report", "one", ""), [":dirs"]),
        (("compare", "one", "codel"), ["codel", ":files py"]),
        (("compare", "meter.rat"), ["meter.rates", ":files py"]),
        (("compare", "rev"), ["rev:", ":files py"]),
        (("run", "meter.rates", "--cluster", ""), ["local", "slurm", "tls://"]),
        (("run", "meter.rates", "--cluster=t"), ["--cluster=tls://"]),
        (("run", "./a"), [":files py"]),
        (("list", "./a"), [":files py"]),
        (("plot", "run", "--source", "a"), [":files py"]),
        (("sweep", "meter.rates", "--over", "target_rate"), []),
        (("sweep", "--quick", "meter.rates", "--over", "dura"), ["duration_s="]),
        (("tune", "meter.rates", "--range", "dura"), ["duration_s="]),
        (("sweep", "--over", "dura"), []),
        (("compare", "runs/one", "meter.rates", "--set", "dura"), ["duration_s="]),
        (("compare", "rev:abc", "--experiment", "meter.rates", "--set", "dura"), ["duration_s="]),
        (("compare", "codel", "fifo", "--set", "scen"), ["scenarios="]),
        (("switch", "a.p4", "-i", "7@l"), ["7@lo"]),
        (("switch", "a.p4", "--no-m"), ["--no-merge"]),
        (("monitor", "a.pcap", "--after", "l"), [":files"]),
        (("monitor", "-i", "eth0", "--after", "l"), ["lo"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("sweep", "aqm.overload", "--column", "cu"), ["cubic_mbps"]),
        (("sweep", "aqm.overload", "--column", "cubic_mbps:me"), ["cubic_mbps:median", "cubic_mbps:mean"]),
        (("tune", "aqm.overload", "--minimise", "c_d"), ["c_delay_ms_mean"]),
        (("tune", "aqm.overload", "--maximise=cu"), ["--maximise=cubic_mbps"]),
        (("sweep", "aqm.overload", "--by", "ca"), ["case"]),
        (("sweep", "--column", "cu"), []),
        (("compare", "rev:abc", "--experiment", "aqm.overload", "--quantity", "cu"), ["cubic_mbps"]),
        (("run", "meter.rates", "--cluster", "local", "--cluster-option", "n_w"), ["n_workers="]),
        (("run", "meter.rates", "--cluster=slurm", "--cluster-option", "qu"), ["queue="]),
        (("run", "meter.rates", "--cluster", "local", "--cluster-option", "qu"), []),
        (("run", "meter.rates", "--cluster", "tcp://a:1", "--cluster-option", "i"), ["insecure="]),
        (("run", "meter.rates", "--cluster-option", "qu"), ["queue="]),
        (("run", "--live-profile", "th"), ["throughput"]),
        (("agent", "--log-format", "j"), ["json"]),
        (("check", "a.p4", "--limit", "state_"), ["state_bytes="]),
        (("switch", "a.p4", "--grpc-limit", "stream_"), ["stream_bytes="]),
        (("check", "--", "--js"), [":files p4"]),
        (("nothing", ""), []),
    ],
)
def test_what_can_follow(words: tuple[str, ...], wanted: list[str]) -> None:
    assert values(*words) == wanted


def test_parameters_and_their_values() -> None:
    known = values("run", "meter.rates", "--set", "")
    assert "duration_s=" in known
    assert all(one.endswith("=") for one in known)
    schemes = values("run", "meter.rates", "--set", "schemes=pa")
    assert "schemes=paper" in schemes
    first, second, *_ = values("sweep", "meter.rates", "--over", "schemes=")
    more = values("sweep", "meter.rates", "--over", f"{first},")
    assert f"{first},{second.removeprefix('schemes=')}" in more
    assert f"{first},{first.removeprefix('schemes=')}" not in more


def test_columns_of_an_earlier_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"case": "a", "seed": 1, "scheme": scheme, "flows": flows, "rate_mbps": at / 7}
        for at, (scheme, flows) in enumerate([("fifo", 1), ("codel", 2)] * 20)
    ]

    def put(folder: str, experiment: str, **about: object) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, "run.json").write_text(json.dumps({"experiment": experiment, **about}))

    assert values("sweep", "meter.matrix", "--column", "") == []
    put("runs/meter.matrix", "meter.matrix", rows=rows)
    assert values("sweep", "meter.matrix", "--column", "") == ["flows", "rate_mbps"]
    assert values("sweep", "meter.matrix", "--by", "") == ["case", "seed", "scheme", "flows"]
    assert values("sweep", "meter.matrix", "--where", "sch") == ["scheme="]
    assert values("sweep", "meter.matrix", "--where", "scheme=") == ["scheme=fifo", "scheme=codel"]
    assert values("sweep", "meter.matrix", "--where", "rate_mbps=") == []
    assert values("compare", "./runs/meter.matrix/", "x", "--quantity", "r") == ["rate_mbps"]
    assert values("sweep", "meter.step", "--column", "") == []
    put("elsewhere", "meter.step", rows=rows)
    assert values("sweep", "meter.step", "--out", "elsewhere", "--column", "r") == ["rate_mbps"]
    Path("my.py").write_text(OWN)
    put("runs/sweep-my.mine", "my.mine", rows=rows)
    assert values("sweep", "./my.py:mine", "--column", "f") == ["flows"]
    assert values("sweep", "./my.py:marked", "--column", "") == ["late_ms"]
    put("runs/meter.step", "another", rows=rows)
    put("runs/meter.udp", "meter.udp", rows=[1])
    put("runs/meter.scale", "meter.scale")
    os.mkfifo("runs/meter.matrix/pipe")
    Path("runs/meter.matrix/run.json").unlink()
    Path("runs/meter.matrix/pipe").rename("runs/meter.matrix/run.json")
    for name in ("step", "udp", "scale", "matrix"):
        assert values("sweep", f"meter.{name}", "--column", "") == []


def test_settings_that_are_written_here_are_those_of_dask_and_of_the_server() -> None:
    from dataclasses import fields

    from tidegate.experiments.executors import cluster_options
    from tidegate.experiments.executors.cluster import INSECURE
    from tidegate.p4runtime import Limits

    assert [one.name for one in fields(Limits)] == list(completion.GRPC_LIMITS)
    assert completion.INSECURE == INSECURE
    pytest.importorskip("dask_jobqueue", reason="needs the extra `cluster`")
    assert set(completion.CLUSTER_OPTIONS["local"]) <= cluster_options._of_local()
    assert set(completion.CLUSTER_OPTIONS["slurm"]) <= cluster_options._of_slurm()


def test_captures_behind_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cap[1].pcap").touch()
    Path("captures").mkdir()
    assert values("replay", "a.p4", "--in", "1=cap") == ["1=cap[1].pcap", "1=captures/"]
    assert values("replay", "a.p4", "--in", "1=cap[") == ["1=cap[1].pcap"]


def test_values_have_names() -> None:
    """`VALUE` says nothing, in help, man pages and completion."""
    nameless = [
        (command.name, one.names)
        for command in tree().all()
        for one in command.parameters
        if one.value == "VALUE"
    ]
    assert nameless == []


def test_no_column_or_setting_makes_completion_slow() -> None:
    """What takes long to import is not imported for a column or a setting, once the experiments are kept."""
    completion.experiments()
    code = (
        "import sys; from tidegate.cli.completion import candidates\n"
        "for words in (['sweep', 'aqm.overload', '--column', ''], ['run', '--cluster-option', ''], "
        "['switch', 'a.p4', '--grpc-limit', '']):\n    assert candidates(words)\n"
        "print([one for one in ('numpy', 'polars', 'grpc', 'distributed', 'matplotlib') if one in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


OWN = """
from tidegate.experiments import Plan, experiment
print("run")
@experiment("my.marked", quick={"late_s": 1.0}, table=("late_ms",))
def marked(early_s: float = 1.0, late_s: float = 2.0):
    "What is marked."
def mine(flows: int = 2) -> Plan: ...
def helper(x: int) -> int: ...
"""


def test_experiments_of_files_are_found_without_running_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.py").write_text(OWN)
    system = Path("blink") / "experiments"
    system.mkdir(parents=True)
    (system / "one.py").write_text("def threshold(mark_ms: float = 1.0) -> 'Plan': ...\n")
    Path("broken.py").write_text("def (")
    os.mkfifo("pipe.py")
    assert completion.candidates(["run", "./my.py:m"]) == ["./my.py:marked\tWhat is marked.", "./my.py:mine"]
    assert values("run", "my.py") == ["my.py:marked", "my.py:mine", ":files py"]
    assert values("run", "./blink:") == ["./blink:threshold"]
    assert values("run", "./my.py:marked", "--set", "") == ["early_s=", "late_s="]
    assert values("sweep", "my.py:mine", "--over", "") == ["flows="]
    assert values("tune", "./blink", "--range", "m") == ["mark_ms="]
    for name in ("broken.py", "pipe.py", "none.py"):
        assert values("run", f"./{name}:") == []
    assert values("run", "./my.py", "--set", "") == []
    assert capsys.readouterr().out == ""


def test_experiments_are_kept_until_their_files_change(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = completion.experiments()
    cache.write_text(cache.read_text().replace("meter.rates", "meter.kept"))
    assert "meter.kept" in completion.experiments()
    monkeypatch.setattr(completion, "_stamp", lambda: "another")
    assert completion.experiments() == known
    cache.write_text("[]")
    assert completion.experiments() == known


def test_the_cache_is_written_under_a_name_that_nobody_knows(cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    other = cache.with_name("other")
    other.write_text("as it was")
    cache.with_name(f"{cache.name}.{os.getpid()}").symlink_to(other)
    cache.symlink_to(other)
    completion.experiments()
    assert other.read_text() == "as it was"
    assert not cache.is_symlink()
    assert json.loads(cache.read_text())["experiments"]


def test_experiments_of_other_folders_and_packages_are_kept_until_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamps = [completion._stamp()]

    def changed() -> bool:
        stamps.append(completion._stamp())
        return stamps[-1] not in stamps[:-1] and stamps[-1] == completion._stamp()

    folder = tmp_path / "own" / "system" / "experiments"
    folder.mkdir(parents=True)
    monkeypatch.setattr(systems, "ELSEWHERE", [str(tmp_path / "own")])
    assert changed()
    (folder / "one.py").touch()
    assert changed()
    site = tmp_path / "site"
    about = site / "lab_rates-1.2.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-rates\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text("[tidegate.experiments]\nlab.rates = lab_rates:mine\n")
    module = site / "lab_rates.py"
    module.touch()
    monkeypatch.syspath_prepend(site)
    assert changed()
    os.utime(module, (4e9, 4e9))
    assert changed()


def test_each_value_of_a_parameter_is_known_to_completion() -> None:
    """A new command whose value is a file is completed only if it is called as the others are."""
    called = {one.value for command in tree().all() for one in command.parameters if one.value}
    assert {"PROG.p4", "TEST.stf", "FILE.py", "DIR", "FILE", "SYSTEM.EXPERIMENT", "NAME=VALUE"} <= called


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the command and a program, where a shell is to start."""
    command = tmp_path / "bin" / "tidegate"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tidegate.cli "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(HERE / "python"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "dumb")
    for name in ("prog.p4", "other.txt"):
        (tmp_path / name).touch()
    (tmp_path / "own.py").write_text("def rates(flows: int = 2) -> 'Plan': ...\n")
    (tmp_path / "programs").mkdir()
    (tmp_path / "results" / "one").mkdir(parents=True)
    completion.experiments()
    return tmp_path


def typed(shell: list[str], folder: Path, setup: str, lines: list[tuple[str, str]]) -> None:
    """Type into an interactive shell and press Tab; wait for what is to appear."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvp(shell[0], shell)
    try:
        said = ""

        def wait(text: str) -> None:
            nonlocal said
            end = time.monotonic() + PATIENCE_S
            while text not in said:
                assert time.monotonic() < end, f"{text!r} did not come: {said!r}"
                if select.select([terminal], [], [], 0.2)[0]:
                    said += os.read(terminal, 4096).decode(errors="replace")
            said = said[said.index(text) + len(text) :]

        os.write(terminal, f"{setup}; echo READ''Y\n".encode())
        wait("READY")
        for line, wanted in lines:
            os.write(terminal, line.encode() + b"\t")
            wait(wanted)
            # A new line, whatever is in this one.
            os.write(terminal, b"\x15")
    finally:
        os.close(terminal)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


TYPED = [
    ("tidegate repl", "tidegate replay "),
    ("tidegate run --quick meter.rat", "meter.rates "),
    ("tidegate run meter.rates --set dura", "duration_s="),
    ("tidegate check prog.", "prog.p4"),
    ("tidegate sweep meter.rates --over dura", "duration_s="),
    ("tidegate tune meter.rates --range dura", "duration_s="),
    ("tidegate sweep meter.rates --over schemes=paper,shap", "schemes=paper,shaper"),
    ("tidegate run meter.rates --cluster sl", "slurm"),
    ("tidegate run meter.rates --cluster local --cluster-option n_w", "n_workers="),
    ("tidegate sweep aqm.overload --column cu", "cubic_mbps"),
    ("tidegate sweep aqm.overload --column cubic_mbps:med", "cubic_mbps:median"),
    ("tidegate sweep aqm.overload --by ca", "case"),
    ("tidegate replay prog.p4 --in 1=oth", "1=other.txt"),
    ("tidegate run meter.rates --cluster tl", "tls://"),
    ("tidegate compare rev", "rev:"),
    ("tidegate compare codel results/o", "results/one/"),
    ("tidegate compare cod", "codel "),
    ("tidegate report resul", "results/"),
    ("tidegate run ./ow", "./own.py"),
    ("tidegate run ./own.py:r", "./own.py:rates"),
    ("tidegate sweep ./own.py:rates --over f", "flows="),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "before"),
    [
        (["bash", "--norc", "--noprofile", "-i"], ""),
        (["zsh", "-f", "-i"], "autoload -U compinit; compinit -D -u; "),
    ],
    ids=["bash", "zsh"],
)
def test_a_shell_completes(shell: list[str], before: str, path: Path) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    script = path / "script"
    script.write_text((HERE / "python/tidegate/cli" / f"completion.{shell[0]}").read_text())
    typed(shell, path, f"{before}source ./script", TYPED)


@pytest.mark.slow
def test_fish_completes(path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    script = path / "script"
    script.write_text((HERE / "python/tidegate/cli/completion.fish").read_text())
    for line, wanted in TYPED:
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source ./script; complete -C '{line}'"],
            cwd=path, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        found = [one.split("\t")[0] for one in done.stdout.splitlines()]
        assert any(one.startswith(wanted.split()[-1]) for one in found), (line, found)


def test_the_command_prints_the_script(tidegate: Run) -> None:
    for shell in completion.SHELLS:
        said = tidegate("completion", shell)
        assert said.code == 0
        assert "tidegate" in said.out
    wrong = tidegate("completion", "csh")
    assert wrong.code == 2
    assert "complete" not in tidegate("--help").out.replace("completion", "")


def test_man_pages(tidegate: Run, tmp_path: Path) -> None:
    (tmp_path / "man").mkdir()
    (tmp_path / "man" / "tidegate-run.1").symlink_to(tmp_path / "other")
    said = tidegate("man", str(tmp_path / "man"))
    assert not (tmp_path / "other").exists()
    written = {path.name: path for path in map(Path, said.out.split())}
    assert {"tidegate.1", "tidegate-run.1", "tidegate-agent-status.1", "tidegate-agent.8"} <= written.keys()
    (tmp_path / "file").touch()
    refused = tidegate("man", str(tmp_path / "file"))
    assert (refused.code, len(refused.err.splitlines())) == (1, 1)
    assert "man pages cannot be written there: " in refused.err
    run = written["tidegate-run.1"].read_text()
    for option in ("backend", "set", "resume", "json"):
        assert f"\\fB\\-\\-{option}\\fR" in run
    assert "Default: sim." in run
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    made = [str(path) for name, path in written.items() if name.endswith(".1")]
    lint = subprocess.run(["mandoc", "-Tlint", *made], capture_output=True, text=True, check=False)
    assert lint.stdout == ""
    assert lint.returncode == 0


def test_text_cannot_be_taken_for_a_request() -> None:
    assert man.escape(".so /etc/passwd").startswith("\\&")
    assert man.escape("'x").startswith("\\&")
    assert man.escape("a\\fBb") == "a\\efBb"
