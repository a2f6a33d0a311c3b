"""What the pacing service keeps in /run is believed only where nobody else can have written it."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tidegate import TidegateError
from tidegate.lab.interfaces import namespace_cookie
from tidegate.systems.pacing.service import left, service
from tidegate.systems.pacing.service.settings import read_keys

GOOD = {"ipv4/tcp_tso_rtt_log": "9"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path.chmod(0o755)
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    return left.path()


def record(**changed: Any) -> str:
    return json.dumps(
        {"pid": 1, "namespace": namespace_cookie(), "sysctls": GOOD, "interfaces": [], **changed}
    )


def test_a_record_is_believed(place: Path) -> None:
    assert left.found() is None
    place.write_text(record())
    assert left.found() == GOOD


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", "null", '{"sysctls": []}'),
        record(namespace=namespace_cookie() + 1),
        record(sysctls={"ipv4/ip_forward": "1", "../../x": "1"}),
        record(sysctls={"ipv4/tcp_tso_rtt_log": "9\n"}),
        record(sysctls={"ipv4/tcp_tso_rtt_log": 9}),
        record(interfaces=5),
    ],
)
def test_a_record_that_says_something_else(place: Path, text: str) -> None:
    place.write_text(text)
    assert left.found() == {}


@pytest.mark.parametrize("what", ["link", "file mode", "folder mode", "fifo"])
def test_a_record_that_others_can_write(place: Path, what: str) -> None:
    if what == "link":
        (place.parent / "elsewhere").write_text(record())
        place.symlink_to(place.parent / "elsewhere")
    elif what == "fifo":
        os.mkfifo(place)
        holder = os.open(place, os.O_RDWR)
    else:
        place.write_text(record())
        (place if what == "file mode" else place.parent).chmod(0o777)
    assert left.found() == {}
    if what == "fifo":
        os.close(holder)


def test_a_folder_that_others_can_write_has_no_lock(place: Path) -> None:
    found = left.lock()
    assert found is not None
    assert left.lock() is None
    left.unlock(found)
    assert list(place.parent.iterdir()) == []
    place.parent.chmod(0o777)
    with pytest.raises(
        TidegateError, match="can be written by others, who could keep the agent from starting; chmod go-w"
    ):
        left.lock()
    place.parent.chmod(0o755)
    place.with_suffix(".lock").symlink_to("/etc/passwd")
    with pytest.raises(TidegateError, match="cannot be written"):
        left.lock()


def test_what_another_user_s_process_says_is_not_the_agent_s_word(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "ADDRESS", f"\0tidegate-test-{os.getpid()}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as squatter:
        squatter.bind(service.ADDRESS)
        squatter.listen()
        monkeypatch.setattr(service, "_peer", lambda _: (4711, 65533))
        with pytest.raises(TidegateError, match="process 4711 of user 65533 has taken the name"):
            service.ask()
        # The agent works without a status.
        claim = service.Claim(0.1)
        assert claim.socket is None
        with pytest.raises(TidegateError, match="an agent runs already"):
            service.Claim(0.1)
        claim.close()
        assert list(place.parent.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: changes owners")
def test_a_key_file_of_another_user(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text('keys = ["0123456789abcdef", "fedcba9876543210"]\n')
    file.chmod(0o600)
    assert read_keys(file).signing == 0
    os.chown(file, 65534, 65534)
    with pytest.raises(TidegateError, match="is of user 65534, who knows the keys: chown 0"):
        read_keys(file)
