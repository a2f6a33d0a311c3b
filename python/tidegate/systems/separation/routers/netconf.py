"""A NETCONF session over SSH (RFC 6241, RFC 6242) with ncclient: each operation is answered, or says how it failed.

`Refused`: the server answered with an error. `Lost`: the session has ended; it is ended for an answer that is no XML or too long. `Silent`: no answer came in time; the session is ended
then, as the answer may still come, and the server releases its lock. Errors of severity `warning` are kept in `warnings`.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from lxml import etree

from tidegate._core import TidegateError

BASE = "urn:ietf:params:xml:ns:netconf:base:1.0"
CAPABILITY = "urn:ietf:params:netconf:capability:"
NEEDED = ("candidate", "confirmed-commit")
MOST_ANSWER = 16 << 20
"""Bytes that a server sends as its hello, and for one operation."""


class Refused(Exception):
    """The server answered an operation with an error."""

    def __init__(self, operation: str, tag: str, message: str) -> None:
        super().__init__(message)
        self.operation, self.tag, self.message = operation, tag, message


class Lost(Exception):
    """The session ended before an operation was answered."""

    def __init__(self, operation: str) -> None:
        super().__init__(operation)
        self.operation = operation


class Silent(Exception):
    """An operation was not answered in time."""

    def __init__(self, operation: str) -> None:
        super().__init__(operation)
        self.operation = operation


@dataclass(frozen=True)
class Access:
    """Where a server is, and how it is logged in to."""

    host: str
    port: int
    username: str
    password: str | None
    key_filename: str | None
    host_key: str | None
    """The server's public key in base64; `None`: as in `~/.ssh/known_hosts`."""
    timeout_s: float
    """Of all that there is until the server's hello, and of each answer."""

    @property
    def place(self) -> str:
        """For messages."""
        return f"{self.host}:{self.port}"


class Session:
    """A session with a candidate datastore."""

    def __init__(self, access: Access) -> None:
        """Connect. Raises `TidegateError` where that fails, and for a server without candidate or confirmed commit."""
        self.warnings: list[str] = []
        self.seconds: dict[str, float] = {}
        """Seconds that each operation took, all calls together, since this was emptied."""
        self._manager = _connect(access)
        self._bounded = self._manager._session.parser
        self._ended = False
        self.capabilities = tuple(self._manager.server_capabilities)
        lacking = [one for one in NEEDED if not self.has(one)]
        if lacking:
            self.close()
            raise TidegateError(
                f"{access.place}: the NETCONF server lacks {' and '.join(lacking)}; a router is needed whose candidate can be "
                "committed until confirmed"
            )

    def has(self, capability: str, version: str | None = None) -> bool:
        """Whether the server has a capability of RFC 6241, as `validate`, in any version if none is given."""
        start = f"{CAPABILITY}{capability}:{version or ''}"
        return any(one.startswith(start) for one in self.capabilities)

    def lock(self) -> None:
        """Lock the candidate."""
        self._call("lock", lambda: self._manager.lock("candidate"))

    def unlock(self) -> None:
        """Unlock the candidate."""
        self._call("unlock", lambda: self._manager.unlock("candidate"))

    def discard(self) -> None:
        """Make the candidate be as running."""
        self._call("discard-changes", self._manager.discard_changes)

    def edit(self, configuration: Any) -> None:
        """Merge an element into the candidate, but where it says otherwise."""
        config = etree.Element(f"{{{BASE}}}config", nsmap={"nc": BASE})
        config.append(configuration)
        self._call(
            "edit-config",
            lambda: self._manager.edit_config(config, target="candidate", default_operation="merge"),
        )

    def validate(self) -> None:
        """Have the server check the candidate."""
        self._call("validate", lambda: self._manager.validate("candidate"))

    def commit(self, confirm_s: int | None = None) -> None:
        """Make the candidate running, for good or until `confirm_s` have passed without another commit."""
        if confirm_s is None:
            self._call("commit", self._manager.commit)
        else:
            self._call(
                "commit-confirmed", lambda: self._manager.commit(confirmed=True, timeout=str(confirm_s))
            )

    def cancel(self) -> None:
        """Take back a commit that is not confirmed yet."""
        self._call("cancel-commit", self._manager.cancel_commit)

    def request(self, operation: Any) -> None:
        """Send an operation of the server's own."""
        self._call(etree.QName(operation).localname, lambda: self._manager.dispatch(operation))

    def running(self, wanted: Any) -> Any:
        """The part of the running configuration that a subtree filter asks for: the `data` element."""
        reply = self._call(
            "get-config", lambda: self._manager.get_config("running", filter=("subtree", wanted))
        )
        if reply.data_ele is None:
            self.abort()
            raise Lost("get-config")
        return reply.data_ele

    def close(self) -> None:
        """End the session in order, if it has not ended."""
        try:
            self._call("close-session", self._manager.close_session)
        except (Refused, Lost, Silent):
            self.abort()

    def abort(self) -> None:
        """End the session at once. The server releases its lock and discards its candidate."""
        self._ended = True
        # ncclient's own thread sees the end, and cleans up.
        self._manager._session.transport.close()

    def _call(self, operation: str, request: Callable[[], Any]) -> Any:
        from ncclient import NCClientError
        from ncclient.operations import TimeoutExpiredError
        from paramiko import SSHException

        if self._ended:
            # ncclient may not have noticed yet, and would wait for an answer in vain.
            raise Lost(operation)
        self._bounded.left = MOST_ANSWER
        began = time.perf_counter()
        try:
            reply = request()
            # The answer is parsed here.
            errors = reply.errors
        except TimeoutExpiredError:
            self.abort()
            raise Silent(operation) from None
        except (NCClientError, SSHException, OSError, EOFError):
            self._ended = True
            raise Lost(operation) from None
        except etree.XMLSyntaxError:
            self.abort()
            raise Lost(operation) from None
        finally:
            took = time.perf_counter() - began
            self.seconds[operation] = self.seconds.get(operation, 0.0) + took
        # ncclient would look at the first error only, which may be a warning in front of an error.
        for error in errors:
            if error.severity != "warning":
                raise Refused(operation, error.tag or "", _text(error))
            self.warnings.append(_text(error))
        return reply


class _Bounded:
    """ncclient's parser of what a session receives, within a budget of bytes."""

    def __init__(self, parser: Any) -> None:
        self._parser = parser
        self.left = MOST_ANSWER

    def parse(self, data: bytes) -> None:
        """On ncclient's thread, which ends the session at an error."""
        from ncclient.transport.errors import TransportError

        self.left -= len(data)
        if self.left < 0:
            raise TransportError(f"an answer of more than {MOST_ANSWER} bytes")
        self._parser.parse(data)


def _text(error: Any) -> str:
    """One line of an error."""
    said = " ".join((error.message or error.tag or "no reason given").split())
    where = " ".join((error.path or "").split())
    holder = re.search(r"session-id>\s*(\d+)", error.info or "")
    if holder is not None:
        said += f" (session {holder[1]})"
    return f"{said} at {where}" if where else said


@contextmanager
def _cut_after(connection: socket.socket, seconds: float) -> Iterator[threading.Event]:
    """Break a connection off if the block lasts longer; whether it has been."""
    late = threading.Event()

    def cut() -> None:
        late.set()
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def _session() -> Any:
    """A session of ncclient's whose parser is bounded from its first byte on."""
    from ncclient.devices.default import DefaultDeviceHandler
    from ncclient.transport import SSHSession

    class Handler(DefaultDeviceHandler):  # type: ignore[misc]
        def get_xml_parser(self, session: Any) -> Any:
            """Asked for after the hello."""
            return session.parser

    session = SSHSession(Handler())
    session.parser = _Bounded(session.parser)
    return session


def _opened(access: Access) -> Any:
    """A session of ncclient's behind the hello. Raises `TimeoutError` where that is not there in time, and what ncclient raises."""
    given = access.password is not None or access.key_filename is not None
    session = _session()
    began = time.monotonic()
    connection = socket.create_connection((access.host, access.port), access.timeout_s)
    left_s = max(access.timeout_s - (time.monotonic() - began), 0)
    with _cut_after(connection, left_s) as late:
        try:
            session.connect(
                host=access.host,
                port=access.port,
                sock=connection,
                username=access.username,
                password=access.password,
                key_filename=access.key_filename,
                hostkey_b64=access.host_key,
                allow_agent=not given,
                look_for_keys=not given,
                timeout=access.timeout_s,
            )
        except BaseException:
            if session.transport is None:
                connection.close()
            else:
                session.close()
            if late.is_set():
                raise TimeoutError(f"none within {access.timeout_s:g} s") from None
            raise
    return session


def _connect(access: Access) -> Any:
    """An ncclient manager that raises no errors of the server by itself."""
    from ncclient import NCClientError
    from ncclient.manager import Manager
    from ncclient.operations import RaiseMode
    from ncclient.transport.errors import AuthenticationError, SSHUnknownHostError
    from paramiko import SSHException

    try:
        session = _opened(access)
    except AuthenticationError:
        raise TidegateError(
            f"{access.place}: the router refuses the user {access.username!r}; check the name, and the password or the key"
        ) from None
    except SSHUnknownHostError as error:
        raise TidegateError(
            f"{access.place}: the host key {error.fingerprint} is not the known one; compare it with the router's, and give it as "
            f"`host_key`, or add it to ~/.ssh/known_hosts: ssh-keyscan -p {access.port} {access.host}"
        ) from None
    except socket.gaierror as error:
        raise TidegateError(f"{access.place}: {error.strerror}; check the router's name") from None
    except (NCClientError, SSHException, OSError, EOFError) as error:
        raise TidegateError(
            f"{access.place}: no NETCONF session: {error}; check the address and the port, and that the router has "
            "`set system services netconf ssh`"
        ) from None
    return Manager(session, session._device_handler, timeout=access.timeout_s, raise_mode=RaiseMode.NONE)
