"""NETCONF servers for tests: one of our own, whose faults can be injected, and Debian's `netconfd` (Yuma123).

Ours has a candidate and a running datastore with the names and nesting of Junos, locks, confirmed commits, and the check that a
commit of Junos makes: what is referred to must be there. It is the package `netconf`, on which all the rest is here. `netconfd` knows
`data/tidegate-junos.yang` alone.
"""

from __future__ import annotations

import copy
import shutil
import socket
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import netconf.error as ncerror
import paramiko
import pytest
from lxml import etree
from ncclient.transport import session as ncclient_session
from netconf import server as ncserver

HERE = Path(__file__).parent
BASE = "urn:ietf:params:xml:ns:netconf:base:1.0"
CAPABILITY = "urn:ietf:params:netconf:capability:"
XNM = "http://xml.juniper.net/xnm/1.1/xnm"
JUNOS = "http://xml.juniper.net/netconf/junos/1.0"
LISTS = {
    "class",
    "schedulers",
    "scheduler-maps",
    "forwarding-class",
    "interface",
    "filter",
    "term",
    "unit",
} | {
    "source-address",
    "destination-address",
}
"""Tags of list entries, by their `name`; other tags are of one element, but those of leaf-lists."""
USER, PASSWORD = "operator", "secret"


def tag(name: str) -> str:
    return f"{{{XNM}}}{name}"


def local(element: Any) -> str:
    return str(etree.QName(element).localname)


def name_of(element: Any) -> str | None:
    text = element.findtext(tag("name"))
    return None if text is None else text.strip()


def configuration(text: str = "") -> Any:
    return etree.fromstring(f'<configuration xmlns="{XNM}">{text}</configuration>')


def interfaces(*names: str) -> str:
    """Interfaces with an address, as an operator has set them."""
    of = "".join(
        f"<interface><name>{name}</name><unit><name>0</name><family>"
        f"<inet><address><name>10.0.{number}.1/24</name></address></inet>"
        f"<inet6><address><name>fd00:{number}::1/64</name></address></inet6></family></unit></interface>"
        for number, name in enumerate(names)
    )
    return f"<interfaces>{of}</interfaces>"


@dataclass
class Fault:
    """What happens to one operation."""

    kind: str
    """`refuse`, `partial` (apply the first change, then refuse), `lie` (ok, and nothing is done), `garble` (lose a scheduler while doing
    it), `warn`, `warn and refuse`, `drop` (end the session in front of it), `drop after` (do it, and end the session), or `slow`."""
    message: str = "out of order"
    tag: str = "operation-failed"


class Methods:
    """The datastores and what can be done to them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.released = threading.Event()
        self.server: Any = None
        self.reset()

    def reset(self, running: str = "", junos: bool = False) -> None:
        """A router as new, with this configuration."""
        with self.lock:
            self.released.set()
            self.released = threading.Event()
            self.running = configuration(running)
            self.candidate = copy.deepcopy(self.running)
            self.junos = junos
            """Confirmed commits as Junos has them: version 1.0, which survive their session; and rates with suffixes."""
            self.before: Any = None
            """Running before a commit that is not confirmed yet; `None` if there is none."""
            self.rollback_1: Any = None
            self.calls: list[str] = []
            self.edits: list[Any] = []
            self.timeouts: list[str] = []
            self.faults: defaultdict[str, list[Fault]] = defaultdict(list)
            self.sessions: list[Any] = []
            if self.server is not None:
                self.server.session_locks["candidate"] = 0

    def nc_append_capabilities(self, capabilities: Any) -> None:
        versions = ["candidate:1.0", "confirmed-commit:1.0", "validate:1.0"]
        if not self.junos:
            versions += ["confirmed-commit:1.1", "validate:1.1", "rollback-on-error:1.0"]
        for one in [*(CAPABILITY + version for version in versions), *([JUNOS] if self.junos else [])]:
            etree.SubElement(capabilities, f"{{{BASE}}}capability").text = one

    # What tests ask and do.

    def text(self) -> str:
        """The running configuration."""
        with self.lock:
            return etree.tostring(self.running, pretty_print=True).decode()

    def fail(self, operation: str, kind: str, *, times: int = 1, after: int = 0, **what: str) -> None:
        """Inject a fault: the operation fails `times` times, when it was done `after` times."""
        self.faults[operation] += [Fault("none")] * after + [Fault(kind, **what)] * times

    def expire(self) -> None:
        """The time of a commit that is not confirmed is over."""
        with self.lock:
            if self.before is not None:
                self.running, self.before = self.before, None

    # Operations.

    def _do(self, session: Any, rpc: Any, operation: str, effect: Any) -> Any:
        self.calls.append(operation)
        if session not in self.sessions:
            self.sessions.append(session)
        waiting = self.faults[operation]
        fault = waiting.pop(0) if waiting else Fault("none")
        if fault.kind == "drop":
            self._end(session)
            return etree.Element("ok")
        if fault.kind == "slow":
            self.released.wait(5)
        if fault.kind == "lie":
            return etree.Element("ok")
        with self.lock:
            if fault.kind == "warn and refuse":
                return [
                    *errors("warning", "operation-failed", "mind this"),
                    *errors("error", fault.tag, fault.message),
                ]
            if fault.kind in ("refuse", "partial"):
                if fault.kind == "partial":
                    effect(1)
                raise ncerror.RPCServerError(rpc, "application", fault.tag, message=fault.message)
            answer = effect(None)
            if fault.kind == "garble":
                *_, lost = self.running.iter(tag("schedulers"))
                lost.getparent().remove(lost)
        if fault.kind == "drop after":
            self._end(session)
        if fault.kind == "warn":
            return [*errors("warning", fault.tag, fault.message), etree.Element("ok")]
        return etree.Element("ok") if answer is None else answer

    def _end(self, session: Any) -> None:
        """Break the connection off, as a router does that is restarted."""
        self.ended()
        session.pkt_stream.stream.get_transport().close()

    def ended(self) -> None:
        """The session with the lock has ended: what it has not confirmed is undone, and then the lock is free."""
        with self.lock:
            if not self.junos:
                self.expire()
            self.candidate = copy.deepcopy(self.running)
            self.server.session_locks["candidate"] = 0

    def rpc_lock(self, session: Any, rpc: Any, _target: str) -> Any:
        return self._do(session, rpc, "lock", lambda _: None)

    def rpc_unlock(self, session: Any, rpc: Any, _target: str) -> Any:
        return self._do(session, rpc, "unlock", lambda _: None)

    def rpc_discard_changes(self, session: Any, rpc: Any) -> Any:
        def effect(_: int | None) -> None:
            self.candidate = copy.deepcopy(self.running)

        return self._do(session, rpc, "discard-changes", effect)

    def rpc_get_config(self, session: Any, rpc: Any, _source: Any, filter: Any) -> Any:
        def effect(_: int | None) -> Any:
            data = etree.Element(f"{{{BASE}}}data")
            shown = copy.deepcopy(self.running)
            for rate in shown.iter(tag("rate")) if self.junos else ():
                for letter, size in (("g", 10**9), ("m", 10**6), ("k", 10**3)):
                    if rate.text.isdigit() and int(rate.text) % size == 0:
                        rate.text = f"{int(rate.text) // size}{letter}"
            picked = None if not len(filter) else pick(shown, filter[0])
            if picked is not None:
                data.append(picked)
            return data

        return self._do(session, rpc, "get-config", effect)

    def rpc_edit_config(self, session: Any, rpc: Any, *params: Any) -> Any:
        config = next(one for one in params if local(one) == "config")
        self.edits.append(copy.deepcopy(config[0]))

        def effect(most: int | None) -> None:
            if self.server.session_locks["candidate"] not in (0, session.session_id):
                raise ncerror.RPCServerError(
                    rpc, "application", "in-use", message="locked by another session"
                )
            edited = copy.deepcopy(self.candidate)
            inside = list(config[0])[:most]
            merge(rpc, edited, inside)
            self.candidate = edited

        return self._do(session, rpc, "edit-config", effect)

    def rpc_validate(self, session: Any, rpc: Any, *_params: Any) -> Any:
        return self._do(session, rpc, "validate", lambda _: check(rpc, self.candidate))

    def rpc_commit(self, session: Any, rpc: Any, *params: Any) -> Any:
        confirmed = any(local(one) == "confirmed" for one in params)
        self.timeouts += [one.text for one in params if local(one) == "confirm-timeout"]

        def effect(_: int | None) -> None:
            check(rpc, self.candidate)
            before = self.running
            self.running = copy.deepcopy(self.candidate)
            if confirmed:
                self.before = before if self.before is None else self.before
            else:
                self.before = None
            self.rollback_1 = before

        return self._do(session, rpc, "commit-confirmed" if confirmed else "commit", effect)

    def rpc_cancel_commit(self, session: Any, rpc: Any, *_params: Any) -> Any:
        def effect(_: int | None) -> None:
            if self.junos:
                raise ncerror.OperationNotSupportedProtoError(rpc)
            self.expire()

        return self._do(session, rpc, "cancel-commit", effect)

    def rpc_load_configuration(self, session: Any, rpc: Any, *_params: Any) -> Any:
        def effect(_: int | None) -> None:
            assert rpc[0].get("rollback") == "1"
            self.candidate = copy.deepcopy(self.rollback_1)

        return self._do(session, rpc, "load-configuration", effect)


def errors(severity: str, error: str, message: str) -> list[Any]:
    """An error of a reply."""
    out = etree.Element(f"{{{BASE}}}rpc-error")
    parts = {"type": "application", "tag": error, "severity": severity, "message": message}
    for key, value in parts.items():
        etree.SubElement(out, f"{{{BASE}}}error-{key}").text = value
    return [out]


def pick(element: Any, wanted: Any) -> Any | None:
    """What a subtree filter selects (RFC 6241 section 6)."""
    if not len(wanted):
        return copy.deepcopy(element)
    keys = [one for one in wanted if not len(one) and (one.text or "").strip()]
    for key in keys:
        if (element.findtext(key.tag) or "").strip() != key.text.strip():
            return None
    out = etree.Element(element.tag, nsmap=element.nsmap)
    inner = [one for one in wanted if one not in keys]
    for child in element:
        if child.tag in {key.tag for key in keys} or not inner:
            out.append(copy.deepcopy(child))
            continue
        for one in inner:
            if one.tag == child.tag and (found := pick(child, one)) is not None:
                out.append(found)
    return out if len(out) else None


def merge(rpc: Any, into: Any, children: list[Any]) -> None:
    """Apply the children of an edit (RFC 6241 section 7.2)."""
    for child in children:
        operation = child.get(f"{{{BASE}}}operation", "merge")
        same = [one for one in into if one.tag == child.tag]
        if local(child) in LISTS and name_of(child) is not None:
            same = [one for one in same if name_of(one) == name_of(child)]
        if operation == "delete":
            if not same:
                text = f"no such element: {local(child)} {name_of(child) or ''}"
                raise ncerror.RPCServerError(rpc, "application", "data-missing", message=text)
            into.remove(same[0])
        elif operation == "replace" or not same:
            new = copy.deepcopy(child)
            for one in new.iter():
                one.attrib.clear()
            if same:
                into.replace(same[0], new)
            else:
                into.append(new)
        elif len(child):
            merge(rpc, same[0], list(child))
        elif local(child) != "name":
            same[0].text = child.text


def check(rpc: Any, candidate: Any) -> None:
    """Raise the error of Junos for a reference to what is not there."""

    def names(path: str) -> set[str | None]:
        return {name_of(one) for one in candidate.findall(path.replace("/", f"/{{{XNM}}}").lstrip("/"))}

    def used(path: str) -> set[str | None]:
        return {one.text for one in candidate.iter(tag(path)) if one.text and not len(one)}

    classes = names("/class-of-service/forwarding-classes/class") | {
        "best-effort",
        "network-control",
    }
    maps = candidate.findall(f"{tag('class-of-service')}/{tag('scheduler-maps')}")
    mapped = {name_of(one) for each in maps for one in each.iter(tag("forwarding-class"))}
    filters = names("/firewall/family/inet/filter") | names("/firewall/family/inet6/filter")
    for what, asked, there in (
        ("scheduler", used("scheduler"), names("/class-of-service/schedulers")),
        ("scheduler-map", used("scheduler-map"), names("/class-of-service/scheduler-maps")),
        ("forwarding-class", used("forwarding-class") | mapped, classes),
        ("filter", used("filter-name"), filters),
    ):
        for name in sorted(str(one) for one in asked - there):
            text = f"Referenced {what} '{name}' is not defined"
            raise ncerror.RPCServerError(rpc, "application", "operation-failed", message=text)


class Ending(ncserver.NetconfServerSession):  # type: ignore[misc]
    """A session that releases its lock when its connection has broken off, too."""

    def _reader_exits(self) -> None:
        self.close()


class Quiet(ncserver.NetconfSSHServer):  # type: ignore[misc]
    """A server without a log when it is gone."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.server_session_class = Ending

    def unlock_target_any(self, session: Any) -> list[str]:
        """A session ends."""
        if session.session_id is not None and self.session_locks["candidate"] == session.session_id:
            self.server_methods.ended()
        return []

    def __del__(self) -> None:
        """Nothing."""


@dataclass
class Place:
    """Where a server is."""

    port: int
    host_key: str
    username: str
    password: str | None = None
    key_filename: str | None = None


@contextmanager
def quick_client() -> Iterator[None]:
    """ncclient looks for what it is to send ten times a second; while the block runs more often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ncclient_session, "TICK", 0.002)
        yield


@contextmanager
def ours(folder: Path) -> Iterator[tuple[Place, Methods]]:
    """A server of our own, while the block runs."""
    key = paramiko.ECDSAKey.generate()
    file = folder / "host"
    key.write_private_key_file(str(file))
    methods = Methods()
    login = ncserver.SSHUserPassController(username=USER, password=PASSWORD)
    server = Quiet(login, methods, port=0, host_key=str(file))
    methods.server = server
    try:
        with quick_client():
            yield Place(server.port, key.get_base64(), USER, PASSWORD), methods
    finally:
        methods.reset()
        for one in list(server.sockets):
            # Each looks once a second whether it goes on; `close` would wait for one after the other.
            one.running = False
            if one.ssh is not None:
                one.ssh.close()
        server.close()
        server.join()


def netconfd_lacks() -> str | None:
    """Why `netconfd` cannot run here."""
    lacking = [one for one in ("netconfd", "sshd", "ssh-keygen") if program(one) is None]
    return f"needs {', '.join(lacking)}: apt install netconfd openssh-server" if lacking else None


def program(name: str) -> str | None:
    return shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def netconfd(folder: Path) -> Iterator[Place]:
    """Yuma123's server behind an sshd of its own, with logs in the folder, while the block runs. Needs root."""
    port = free_port()
    plain = folder / "ncx"
    for name in ("host", "login"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    settings = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "login.pub",
        "StrictModes": "no",
        "PidFile": "none",
        "UsePAM": "no",
        "PermitRootLogin": "yes",
        # The server takes the port and the path apart, its subsystem together.
        "Subsystem": f'netconf "/usr/sbin/netconf-subsystem --ncxserver-sockname={port}@{plain}"',
    }
    (folder / "sshd_config").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    Path("/run/sshd").mkdir(exist_ok=True)
    options = [
        "--module=tidegate-junos",
        f"--modpath={HERE / 'data'}:/usr/share/yuma/modules",
        "--no-startup",
    ]
    options += ["--superuser=root", "--access-control=off", "--target=candidate"]
    options += [f"--port={port}", f"--ncxserver-sockname={plain}"]
    running = []
    try:
        for words in (
            [program("netconfd"), *options],
            [program("sshd"), "-D", "-e", "-f", str(folder / "sshd_config")],
        ):
            with (folder / f"{Path(str(words[0])).name}.log").open("w") as log:
                running.append(
                    # It writes a backup of its configuration into its working directory.
                    subprocess.Popen(
                        [str(word) for word in words],
                        cwd=folder,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                    )
                )
        _wait_for(port, plain, folder)
        key = (folder / "host.pub").read_text().split()[1]
        with quick_client():
            yield Place(port, key, "root", key_filename=str(folder / "login"))
    finally:
        for one in running:
            one.terminate()
        for one in running:
            try:
                one.wait(10)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()


def _wait_for(port: int, plain: Path, folder: Path) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            if plain.exists():
                return
        time.sleep(0.02)
    logs = "".join(file.read_text() for file in folder.glob("*.log"))
    raise AssertionError(f"netconfd has not come up:\n{logs}")
