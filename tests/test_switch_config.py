"""Configuration files, logs and the unit of `tidegate switch`."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from conftest import Run
from namespaces import ip, needs_root
from tidegate import config_file
from tidegate._core import TidegateError
from tidegate.command_tree import Parameter

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "examples/p4/learning_switch/learning_switch.p4"


def parameter(value: str | None, multiple: bool = False) -> Parameter:
    return Parameter(("--x",), (), value, "", None, False, multiple)


KNOWN = {
    "program": parameter("PROG.p4"),
    "interface": parameter("PORT@INTERFACE", True),
    "rate": parameter("PORT=RATE", True),
    "queues": parameter("N"),
    "merge": parameter(None),
    "include": parameter("DIR", True),
}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("queus = 2", ":1: there is no 'queus'; did you mean 'queues'? known: program, interface"),
        ("queues = 2\n\nintrface = []", ":3: there is no 'intrface'"),
        ('interface = "1@eth1"', ":1: interface is a list, not '1@eth1'"),
        ("interface = [true]", "interface is a text in quotes, not True"),
        ("program = 3", ":1: program is a text in quotes, not 3"),
        ("interface = [3]", ":1: interface is a text in quotes, not 3"),
        ("rate = 5", ":1: rate is a list or a table, not 5"),
        ("[rate]\n1 = [5]", ":1: rate.1 is a text or a number, not [5]"),
        ('merge = "no"', ":1: merge is true or false, not 'no'"),
        ("queues = [1]", "queues is a text or a number, not [1]"),
        ("[queues]\nx = 1", ":1: queues is a text or a number"),
        ("queues = 2 3", ":1:12: "),
        ("config = 1", "there is no 'config'"),
        (f"queues = {'1' * 5000}", "a number has too many digits"),
        (f"queues = 0x{'1' * 5000}", "a number has too many digits"),
        (f"queues = {'[' * 5000}", "nested too deeply"),
    ],
)
def test_files_that_cannot_be(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "switch.toml"
    path.write_text(text)
    with pytest.raises(TidegateError) as caught:
        config_file.read(path, KNOWN)
    assert str(caught.value).startswith(f"{path}:")
    assert why in str(caught.value)


def test_values_are_those_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "switch.toml"
    path.write_text(
        'program = "a.p4"\ninterface = ["1@e"]\nqueues = 2\nmerge = false\ninclude = ["/abs", "rel"]\n'
        '[rate]\n1 = "5 Mbit/s"\n'
    )
    assert config_file.read(path, KNOWN) == {
        "program": str(tmp_path / "a.p4"),
        "interface": ["1@e"],
        "rate": ["1=5 Mbit/s"],
        "queues": "2",
        "merge": False,
        "include": ["/abs", str(tmp_path / "rel")],
    }


def test_what_the_command_line_gives_goes_before(tidegate: Run, tmp_path: Path) -> None:
    """Each is refused before anything is opened, so the refusal shows the value that counts."""
    path = tmp_path / "switch.toml"
    path.write_text(f'program = "{PROGRAM}"\ninterface = ["1@nowhere"]\nqueue_limit = "5 parsec"\n')
    of_file = tidegate("switch", "--config", path)
    assert of_file.code == 1
    assert "--queue-limit 5 parsec" in of_file.err
    of_line = tidegate("switch", "--config", path, "--queue-limit", "6 parsec", "-i", "x")
    assert "the port 'x'" in of_line.err
    assert tidegate("switch", PROGRAM).code == 2
    assert "nothing.toml: No such file" in tidegate("switch", "--config", tmp_path / "nothing.toml").err


def test_an_error_is_a_line_of_json_too(tidegate: Run) -> None:
    said = tidegate("switch", PROGRAM, "-i", "x", "--log-format", "json")
    assert said.code == 1
    line = json.loads(said.err)
    assert line["level"] == "error"
    assert "the port 'x'" in line["message"]


def test_what_controllers_and_python_say_is_a_line_of_json_too(tmp_path: Path) -> None:
    controller = tmp_path / "controller.py"
    controller.write_text(
        "import logging, warnings\n"
        "logging.getLogger('tidegate.router').warning('%s queues', 2)\n"
        "try: 1 / 0\nexcept ZeroDivisionError: logging.getLogger('mine').exception('mine')\n"
        "warnings.warn('old')\ncontrollers = []\n"
    )

    def said(*words: str) -> str:
        command = [
            sys.executable,
            "-m",
            "tidegate.cli",
            "switch",
            PROGRAM,
            "-i",
            "x",
            "--controller",
            controller,
        ]
        return subprocess.run([*command, *words], capture_output=True, text=True, check=False).stderr

    lines = [json.loads(line) for line in said("--log-format", "json").splitlines()]
    assert [one["level"] for one in lines] == ["warning", "error", "warning", "error"]
    assert lines[0]["message"] == "2 queues"
    assert lines[1]["message"].startswith("mine\nTraceback")
    assert "old" in lines[2]["message"]
    assert said().startswith("2 queues\nmine\nTraceback")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("program = 3", ":1: program is a text in quotes, not 3"),
        ("queues = 1000", ":1: queues is '1000': "),
        ('\nmode = "xpd"', ":2: mode is 'xpd': 'xpd' is not one of 'auto', 'xdp', "),
        ("processor = 1.5", ":1: processor is '1.5': "),
        ("interface = []", ":1: interface is []: there is nothing in it"),
        ("queues = x", ":1:10: Invalid value"),
        (
            '\nrate = {1 = "0 Mbit/s"}',
            ":2: rate is ['1=0 Mbit/s']: --rate '1=0 Mbit/s': a port with the rate 0 sends nothing",
        ),
        (
            "rate = {600 = 5}",
            ":1: rate is ['600=5']: --rate '600=5': write PORT=VALUE with one of the ports 0 to",
        ),
        (
            'delay = ["1=5 parsec"]',
            ":1: delay is ['1=5 parsec']: --delay '1=5 parsec': `5 parsec` is not a time",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_place(
    tidegate: Run, tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "switch.toml"
    path.write_text(text)
    said = tidegate("switch", "--config", path)
    assert (said.code, len(said.err.splitlines())) == (1, 1)
    assert said.err.startswith(f"{path}{why}")
    lines = tidegate("switch", "--config", path, "--log-format=json")
    assert lines.code == 1
    line = json.loads(lines.err)
    assert (line["level"], line["message"]) == ("error", said.err.rstrip())


def test_a_file_says_the_form_of_its_own_errors(tidegate: Run, tmp_path: Path) -> None:
    path = tmp_path / "switch.toml"
    for text, why in (("queus = 1", "there is no 'queus'"), ("", "Missing argument 'PROG.p4'")):
        path.write_text(f'log_format = "json"\n{text}\n')
        assert why in json.loads(tidegate("switch", "--config", path).err)["message"]
        assert why in tidegate("switch", "--config", path, "--log-format", "text").err.splitlines()[-1]


@needs_root
def test_a_switch_by_its_file(tmp_path: Path) -> None:
    name = f"tg{os.getpid() % 100_000}"
    path = tmp_path / "switch.toml"
    path.write_text(f'program = "{PROGRAM}"\ninterface = ["3@tap:{name}"]\nlog_format = "json"\n')
    command = [sys.executable, "-m", "tidegate.cli", "switch", "--config", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = []
        while not lines or not lines[-1]["message"].startswith("running"):
            lines.append(json.loads(process.stderr.readline()))
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert lines[0]["message"] == f"port 3: {name}, tap, MTU 1500"
    assert lines[0]["level"] == "info"
    assert (
        abs(
            time.time()
            - time.mktime(time.strptime(lines[0]["time"][:19], "%Y-%m-%dT%H:%M:%S"))
            + time.timezone
        )
        < 60
    )


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that other users may read."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_the_operator_s_files_with_what_the_unit_permits(tidegate: Run, readable: Path) -> None:
    """Settings and entries of docs/operate.md, as written, run by a user with the unit's capabilities alone."""
    page = (ROOT / "docs/operate.md").read_text()
    for name, block in (("campus.toml", r"^```toml\n(.*?)^```"), ("campus.txt", r"^```\n(mc_mgrp.*?)^```")):
        (text,) = re.findall(block, page, re.MULTILINE | re.DOTALL)
        (readable / name).write_text(text)
    (readable / "campus.p4").write_text(PROGRAM.read_text())
    bounding = re.search(r"^CapabilityBoundingSet=(.*)$", tidegate("unit", "switch").out, re.MULTILINE)
    assert bounding
    # The last one for the files of this user's Python alone.
    held = ",".join(
        [
            "-all",
            *(
                f"+{name.removeprefix('CAP_').lower()}"
                for name in [*bounding[1].split(), "CAP_DAC_READ_SEARCH"]
            ),
        ]
    )
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
    user += [f"--{kind}={held}" for kind in ("bounding-set", "inh-caps", "ambient-caps")]
    netns = f"tgc{os.getpid()}"
    ip("netns", "add", netns)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd, ExitStack() as stack:
        stack.callback(ip, "netns", "del", netns)
        systemd.bind(str(readable / "notify"))
        systemd.settimeout(10)
        (readable / "notify").chmod(0o777)
        for port in (1, 2):
            ip("-n", netns, "link", "add", f"eth{port}", "type", "veth", "peer", "name", f"peer{port}")
            for end in (f"eth{port}", f"peer{port}"):
                ip("-n", netns, "link", "set", end, "up")
        ip("-n", netns, "link", "set", "lo", "up")
        command = [
            "nsenter",
            f"--net=/run/netns/{netns}",
            *user,
            sys.executable,
            "-m",
            "tidegate.cli",
            "switch",
        ]
        command += ["--config", str(readable / "campus.toml")]
        environment = os.environ | {"NOTIFY_SOCKET": str(readable / "notify")}
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if line.startswith("running"):
                    break
            process.send_signal(signal.SIGTERM)
            said += process.stderr.read().splitlines()
        assert process.returncode == 0, said
        # `Type=notify`: this ends the wait of `systemctl start`.
        assert systemd.recv(100) == b"READY=1"
    assert {
        "metrics at http://127.0.0.1:9100/metrics\n",
        "port 1: eth1, xdp, MTU 1500\n",
        "running; Ctrl-C ends it\n",
    } <= set(said)
    # The unit has `LimitMEMLOCK=infinity`; the memory that may be locked here need not be enough for AF_XDP at two ports.
    assert re.search(r"^port 2: eth2, (xdp|packet), MTU 1500$", "".join(said), re.MULTILINE)


def test_a_unit_starts_what_printed_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command, whatever characters its path has; or the module, where it was called as one."""

    def start() -> str:
        ran = subprocess.run([*command, "unit", "switch"], capture_output=True, text=True, check=True)
        return next(line for line in ran.stdout.splitlines() if line.startswith("ExecStart="))

    command = [sys.executable, "-m", "tidegate"]
    assert start().startswith(f"ExecStart={sys.executable} -P -m tidegate switch --config ")
    script = tmp_path / "in a 5% folder" / "tidegate"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom tidegate.cli import main\nmain()\n")
    script.chmod(0o755)
    command = [str(script)]
    place = str(tmp_path).replace("%", "%%")
    assert start().startswith(f'ExecStart="{place}/in a 5%% folder/tidegate" switch --config ')
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "one.service"
    unit.write_text(f"[Service]\n{start()}\n".replace("%i", "one"))
    said = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stderr) == (0, "")


def test_a_path_that_systemd_does_not_start_is_refused(
    monkeypatch: pytest.MonkeyPatch, tidegate: Run
) -> None:
    monkeypatch.setattr(sys, "executable", "/a'b/python")
    ran = tidegate("unit", "switch")
    assert (ran.code, "systemd starts no program with a quote" in ran.err) == (1, True)


@pytest.mark.parametrize("hidden", ["/home/me/venv/bin/python3", "/root/venv/bin/python3", None])
def test_a_unit_that_cannot_see_tidegate_says_so(
    monkeypatch: pytest.MonkeyPatch, tidegate: Run, hidden: str | None
) -> None:
    from tidegate.cli import unit

    monkeypatch.setattr(sys, "executable", hidden or "/opt/tidegate/bin/python3")
    monkeypatch.setattr(unit, "__file__", "/opt/tidegate/lib/python3.11/site-packages/tidegate/cli/unit.py")
    ran = tidegate("unit", "switch")
    assert ran.code == 0
    said = f"warning: the service cannot see {hidden}: its unit hides /home, /root and /tmp; install "
    assert ran.err[: len(said)] == (said if hidden else "")


def test_units(tidegate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    switch, agent = (tidegate("unit", name).out for name in ("switch", "agent"))
    assert "switch --config /etc/tidegate/%i.toml --log-format json" in switch
    assert agent == tidegate("agent", "unit").out
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    # As docs/commands.md installs them.
    for page in map(Path, tidegate("man", str(tmp_path / "pages")).out.split()):
        section = tmp_path / f"man{page.suffix[1:]}"
        section.mkdir(exist_ok=True)
        page.rename(section / page.name)
    monkeypatch.setenv("MANPATH", str(tmp_path))
    for name, text in (("tidegate-switch@s1.service", switch), ("tidegate-agent.service", agent)):
        unit = tmp_path / name
        # What it starts need not be installed here. Its man page is looked up.
        lines = text.splitlines()
        unit.write_text(
            "\n".join("ExecStart=/bin/true" if line.startswith("ExecStart=") else line for line in lines)
        )
        said = subprocess.run(
            ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
        )
        assert (said.returncode, said.stderr) == (0, "")
        judged = subprocess.run(
            ["systemd-analyze", "security", "--offline=yes", "--threshold=30", str(unit)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        # In tenths: up to 4.9 systemd calls it OK; it has root and the network's capabilities in mind.
        assert judged.returncode == 0, judged.stdout[-200:]
