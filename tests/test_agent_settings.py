"""What `tidegate agent` is told, and the check that its programs make."""

from __future__ import annotations

import ctypes
import json
import logging
import random
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import Run
from tidegate import logs
from tidegate._core import TidegateError
from tidegate.hosts import libbpf
from tidegate.systems.pacing.format import Keys, halfsiphash
from tidegate.systems.pacing.service import settings
from tidegate.systems.pacing.service.pacer import Pacer
from tidegate.systems.pacing.service.service import Service

KEYS = Keys((0x0123456789ABCDEF, 0x1122334455667788))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("interfaces = []", "no interface is given"),
        ('interfaces = ["e0"]\nport = [1]', r"there is no 'port'; did you mean 'ports'\? known: interfaces,"),
        ('interfaces = "e0"', r"agent.toml:1: interfaces is a list of texts, not 'e0'"),
        (
            'interfaces = ["e0"]\nports = ["http"]',
            r"agent.toml:2: ports is a list of numbers, not \['http'\]",
        ),
        ('\n\nweight = "2"', r"agent.toml:3: weight is a whole number, not '2'"),
        ("least_rate = 1.5", r"agent.toml:1: least_rate is a text or a number, not 1\.5"),
        ("timeout = 30", r"agent.toml:1: timeout is a text in quotes, not 30"),
        ('interfaces = ["e0"]\nports = [70000]', "70000 is not a TCP port"),
        ('interfaces = ["e0"]\ndestinations = ["10.0.0.1/8"]', "destination '10.0.0.1/8' is no IP prefix"),
        ('interfaces = ["e0"]\ndirection = "up"', "direction 'up' is none of opened, accepted, both"),
        ('interfaces = ["e0"]\npace_by = "cake"', "pace_by 'cake' is none of socket, fq, htb"),
        ('interfaces = ["e0"]\nlog_format = "xml"', "log_format 'xml' is none of text, json"),
        ('interfaces = ["e0"]\nweight = 0', "0 is not a weight"),
        ('interfaces = ["e0"]\nleast_rate = "0 Mbit/s"', "cannot be set; give 8 kbit/s to 34 Gbit/s"),
        ('interfaces = ["e0"]\nleast_rate = "2 Mbit/s"\nmost_rate = "1 Mbit/s"', "the least one first"),
        ('interfaces = ["e0"]\nrefresh = "1 ms"', "refresh 1 ms is too short"),
        ('interfaces = ["e0"]\ntimeout = "1 s"', "timeout 1 s is shorter than refresh, 10 s"),
        ('interfaces = ["e0"]\ntimeout = "1 parsec"', "parsec"),
        ('interfaces = ["e0"]\nmetrics_addr = "x"', "'x' is not an address"),
        ('interfaces = ["e0"]\nmetrics_addr = "[::]:9101"', "or --insecure if this is meant"),
        ('interfaces = ["e0"]\ninsecure = 1', r"agent.toml:2: insecure is true or false, not 1"),
        ('interfaces = ["e0"]\nkey_file = "/nowhere"', "key file /nowhere: No such file"),
        ("interfaces = [", "configuration .*agent.toml: "),
        (f"weight = {'1' * 5000}", "configuration .*agent.toml: a number has too many digits"),
        (f"weight = 0x{'1' * 5000}", "configuration .*agent.toml: a number has too many digits"),
        (f"ports = {'[' * 5000}", "configuration .*agent.toml: .* nested too deeply"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "agent.toml"
    path.write_text(text)
    with pytest.raises(settings.TidegateError) as caught:
        settings.read(path, {})
    assert re.search(why, str(caught.value)), caught.value


def test_an_error_is_a_line_of_json_where_the_option_or_the_file_asks_for_it(
    tidegate: Run, tmp_path: Path
) -> None:
    path = tmp_path / "agent.toml"
    path.write_text('interfaces = ["e0"]\nlog_format = "json"')
    assert settings.read(path, {}).log_format == "json"
    assert settings.read(path, {"log_format": "text"}).log_format == "text"
    path.write_text('log_format = "json"')
    for words in (["--log-format", "json"], ["--log-format", "json", "--config", path]):
        said = tidegate("agent", *words)
        assert said.code == 1
        line = json.loads(said.err)
        assert (line["level"], line["message"].split(";")[0]) == ("error", "no interface is given")
    path.write_text('weight = "x"\nlog_format = "json"')
    said = tidegate("agent", "--config", path)
    assert json.loads(said.err)["message"] == (f"configuration {path}:1: weight is a whole number, not 'x'")
    path.write_text('interfaces = ["no-such-if"]\nlog_format = "json"')
    said = tidegate("agent", "--config", path)
    assert said.code == 1
    assert json.loads(said.err)["level"] == "error"
    assert not tidegate("agent", "--config", path, "--log-format", "text").err.startswith("{")


def test_a_reload_takes_the_form_of_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    text = settings.Settings(interfaces=("e0",))
    service = Service(text, lambda: replace(text, log_format="json"))
    pacer: Any = SimpleNamespace(use=lambda settings: None)
    try:
        service._reload(pacer)
        assert json.loads(capsys.readouterr().err)["message"] == "reloaded"
        logging.getLogger("another").warning("of another")
        assert json.loads(capsys.readouterr().err)["message"] == "of another"
    finally:
        logs.serve("tidegate.agent", as_json=False)


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        (
            'keys = ["0123456789abcdef", "1122334455667788"]',
            0o644,
            "can be read by others .mode 644.: chmod 600",
        ),
        ('keys = ["0123456789abcdef"]', 0o600, "two keys of 16 hexadecimal digits"),
        ('keys = ["0123456789abcdef", "112233445566778_"]', 0o600, "two keys of 16 hexadecimal digits"),
        ('keys = ["0123456789abcdef", "1122334455667788"]\nsigning = 2', 0o600, "signing = 0 or 1"),
        ("keys", 0o600, "key file .*keys.toml: "),
        (f"signing = {'1' * 5000}", 0o600, "key file .*keys.toml: a number has too many digits"),
    ],
)
def test_key_files_that_cannot_be(tmp_path: Path, text: str, mode: int, why: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(settings.TidegateError) as caught:
        settings.read_keys(path)
    assert re.search(why, str(caught.value)), caught.value


def test_places_are_looked_at_before_programs_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libbpf, "compiled", lambda source: pytest.fail("compiled"))
    with pytest.raises(TidegateError, match="cgroup /nowhere: there is no such folder"):
        Pacer(settings.Settings(interfaces=("lo",), cgroups=("/nowhere",)))


def test_a_key_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('keys = ["0123456789abcdef", "1122334455667788"]\nsigning = 1')
    path.chmod(0o600)
    assert settings.read_keys(path) == Keys(KEYS.values, signing=1)


@pytest.mark.skipif(shutil.which(libbpf.COMPILER) is None, reason="needs clang")
def test_the_check_is_that_of_the_format(tmp_path: Path) -> None:
    source = tmp_path / "check.c"
    header = Path(libbpf.__file__).with_name("siphash.h")
    source.write_text(
        f'#include "{header}"\nu32 check(u64 key, const u32 *words, u32 n) {{ return check_of(key, words, n); }}\n'
    )
    library = tmp_path / "check.so"
    command = [libbpf.COMPILER, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-fsanitize=undefined"]
    subprocess.run([*command, "-fsanitize-trap=undefined", "-o", str(library), str(source)], check=True)
    check = ctypes.CDLL(str(library)).check
    check.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32]
    check.restype = ctypes.c_uint32
    dice = random.Random(1)
    for _ in range(200):
        # With addresses of IPv4, and of IPv6.
        for count in (6, 12):
            key, words = dice.getrandbits(64), [dice.getrandbits(32) for _ in range(count)]
            packed = (ctypes.c_uint32 * count)(*words)
            assert check(key, packed, count) == halfsiphash(key, words) & 0xFFFFFF
