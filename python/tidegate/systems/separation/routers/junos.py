"""A Junos router over NETCONF: forwarding classes, schedulers and a scheduler map at a port, and a firewall filter that classifies.

    with JunosRouter("192.0.2.1", "xe-0/0/1", "1 Gbit/s", ingress=["xe-0/0/0"], username="tidegate", key_filename="key") as router:
        SeparationController(router, ...)

A plan is one transaction: lock the candidate, discard what is left in it, read running, edit what differs, validate, commit until
confirmed, read running back and compare, commit for good, unlock. Where something fails the candidate is discarded, and a commit that
is not confirmed is taken back: by `cancel-commit`, or with `rollback 1` on Junos, which has none. If neither arrives, the router
rolls back by itself after `confirm_timeout`. A session that is lost is opened again once, and the transaction starts anew.

What a plan's queues and flows become is in `junos_config`, operations and their errors are in `netconf`. Only entries that are named
after this object, and the leaves that refer to them, are written; a scheduler map or an input filter that somebody else has set is
refused. When the router is closed, all of it is removed, in a transaction too. What a killed process has left is replaced by the next.

Junos shares are of what its line cards count as a packet's length. Rates of a plan are of IP packets; nothing is added to them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from lxml import etree

from tidegate import units
from tidegate._core import TidegateError
from tidegate.systems.separation.routers import Plan
from tidegate.systems.separation.routers import junos_config as config
from tidegate.systems.separation.routers.netconf import BASE, Access, Lost, Refused, Session, Silent
from tidegate.units import PS_PER_S

QUEUES = tuple(queue for queue in range(config.PORT_QUEUES) if queue != config.CONTROL_QUEUE)
"""All of a port's but that of routing protocols."""
LONG_BUFFER, SHORT_BUFFER, FAST_BPS = "500 ms", "100 ms", 10**9
"""Buffers of Trio line cards have at most so much time below 1 Gbit/s, and from there on."""
JUNOS = "http://xml.juniper.net/netconf/junos"
"""A capability of Juniper's own server begins with this."""
LOCK_PAUSE_S = 0.25
PS_PER_US = PS_PER_S // 10**6

SAYS = {
    "discard-changes": "does not discard its candidate",
    "get-config": "does not show its configuration",
    "edit-config": "refuses the edit",
    "validate": "refuses the configuration",
    "commit-confirmed": "refuses the commit",
    "commit": "refuses to confirm the commit",
}
"""What an error to an operation means."""


@dataclass(frozen=True)
class Transaction:
    """What the last transaction did, and how long it took."""

    changed: int
    """Entries and leaves that were written or deleted; 0: the router was as wanted."""
    seconds: Mapping[str, float]
    """Of each operation, by its name in NETCONF, with the way to the router and back; `commit-confirmed` is the first commit."""
    warnings: tuple[str, ...]
    """What the router said about it without refusing it."""

    @property
    def commit_s(self) -> float:
        """Time of the commit (s) that put the new configuration into effect."""
        return self.seconds.get("commit-confirmed", 0.0)


class _Differs(Exception):
    """Running is not what was committed."""

    def __init__(self, where: str, *, unchanged: bool) -> None:
        super().__init__(where)
        self.where, self.unchanged = where, unchanged


class JunosRouter:
    """A port of a Junos router."""

    def __init__(
        self,
        host: str,
        interface: str,
        rate: units.Rate,
        *,
        ingress: Sequence[str],
        username: str,
        password: str | None = None,
        key_filename: str | None = None,
        host_key: str | None = None,
        port: int = 830,
        classify: config.Classify = "addresses",
        queues: Sequence[int] = QUEUES,
        ipv6: bool = False,
        longest_buffer: units.Time | None = None,
        most_terms: int = 2000,
        timeout: units.Time = "30 s",
        confirm_timeout: units.Time = "2 min",
        lock_wait: units.Time = "5 s",
        name: str = "tidegate",
    ) -> None:
        """Connect, and look at the configuration; nothing is changed until the first plan.

        `interface` has the congested link, with `rate` in bit/s; packets come in by the units `ingress`, as `xe-0/0/0` or `xe-0/0/0.5`,
        and are put into queues there: by pairs of `addresses` as in gomez2024, or by `flows`. `queues` are the numbers of the port's
        queues that a plan's become, in its order; without queue 3, on which Junos has routing protocols, that queue keeps 5 % of the
        link. `password` or `key_filename`: if neither is given, the SSH agent's keys and those in `~/.ssh`; `host_key` is the router's
        public key in base64, if it is not in `~/.ssh/known_hosts`. `longest_buffer` bounds each queue's buffer, by the time that it
        takes at the queue's rate. `timeout` is that of the connection and of each answer, `lock_wait` how long a lock of somebody
        else's is waited for. A router with several such ports needs a `name` for each.

        Raises `TidegateError` for settings out of range, if no session is had, if the router lacks one of the interfaces, and if
        somebody else has set a scheduler map or an input filter at one of them.
        """
        self.interface, self.host = interface, host
        self.last: Transaction | None = None
        """What the last transaction did; `None`: there was none yet."""
        self._confirm_s = -(-units.time(confirm_timeout) // PS_PER_S)
        self._lock_wait_s = units.time(lock_wait) / PS_PER_S
        timeout_s = units.time(timeout) / PS_PER_S
        bps = units.rate(rate)
        if longest_buffer is None:
            longest_buffer = LONG_BUFFER if bps < FAST_BPS else SHORT_BUFFER
        self._settings = config.Settings(
            name,
            interface,
            bps,
            tuple(_unit(one) for one in ingress),
            tuple(queues),
            classify,
            ipv6,
            units.time(longest_buffer) // PS_PER_US,
            most_terms,
        )
        self._check(timeout_s)
        self._access = Access(host, port, username, password, key_filename, host_key, timeout_s)
        self._session: Session | None = None
        self._applied: config.Configuration | None = None
        self._validates = True
        self._fresh = True
        self._open_until = 0.0
        self._closed = False
        self._control = config.CONTROL_CLASS
        self._session = self._connect()
        try:
            with self._told(lost=True):
                data = self._session.running(config.wanted_filter(self._settings))
            self._refuse_others(data)
            self._control = config.control_class(data, self._settings)
        except BaseException:
            self._drop()
            raise

    def _check(self, timeout_s: float) -> None:
        settings = self._settings
        if settings.rate_bps < config.LEAST_BPS:
            raise TidegateError(
                f"{self.interface}: a rate of {units.show_rate(settings.rate_bps)}; give 3200 bit/s or more"
            )
        if not settings.ingress:
            raise TidegateError(f"{self.interface}: no ingress; give the interfaces that packets come in by")
        numbers = settings.queues
        if (
            not numbers
            or len(set(numbers)) < len(numbers)
            or not set(numbers) <= set(range(config.PORT_QUEUES))
        ):
            raise TidegateError(
                f"{self.interface}: the queues {list(numbers)}; a port of Junos has {config.PORT_QUEUES}, give different numbers from "
                f"0 to {config.PORT_QUEUES - 1}"
            )
        if settings.classify not in ("addresses", "flows"):
            raise TidegateError(f"classify is {settings.classify!r}; give addresses or flows")
        if re.fullmatch(r"[A-Za-z][\w-]{0,40}", settings.name) is None:
            raise TidegateError(
                f"the name {settings.name!r}; give a letter, and letters, digits, _ and - after it"
            )
        if settings.longest_buffer_us < 1 or settings.most_terms < 1:
            raise TidegateError("longest_buffer and most_terms are limits; give 1 us or more, and 1 or more")
        if timeout_s <= 0 or self._confirm_s < timeout_s:
            raise TidegateError(
                f"the confirm_timeout {self._confirm_s} s is shorter than the timeout {timeout_s:g} s: the router would roll back "
                "while an answer is waited for; give a longer one"
            )

    @property
    def most_queues(self) -> int:
        """Queues that a plan can have."""
        return len(self._settings.queues)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def apply(self, plan: Plan) -> None:
        """Make the router's configuration be as planned; a plan that changes nothing in it sends nothing.

        Raises `TidegateError` for a plan that the port cannot have, if the router cannot be reached or does not answer in time, if
        its candidate is locked, if it refuses the configuration, and if it has another one after the commit. The message says which,
        and what to do; the router has its last good configuration.
        """
        if self._closed:
            raise TidegateError(f"{self.interface}: the router object is closed; make a new one")
        wanted = config.wanted(plan, self._settings, self._control)
        if wanted != self._applied:
            self._transact(wanted)

    def close(self) -> None:
        """Remove all that is ours from the router, and disconnect.

        Raises `TidegateError` as `apply` does; the router keeps the last plan's queues then.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._transact({})
        except TidegateError as error:
            raise TidegateError(f"{error}; the queues of {self.interface} stay as they are") from None
        finally:
            if self._session is not None:
                self._session.close()
                self._session = None

    def _connect(self) -> Session:
        self._fresh = True
        return Session(self._access)

    def _drop(self) -> None:
        if self._session is not None:
            self._session.abort()
            self._session = None

    def _transact(self, wanted: config.Configuration) -> None:
        """Bring the router to a configuration; once more with a new session where the first is lost."""
        self._applied = None
        for is_last in (False, True):
            if self._session is None:
                try:
                    self._session = self._connect()
                except TidegateError as error:
                    raise TidegateError(f"{error}. {self._keeps()}") from None
            try:
                with self._told():
                    self._once(self._session, wanted)
            except Lost as error:
                self._drop()
                if is_last:
                    raise TidegateError(
                        f"{self._access.place}: the session ended during {error.operation}, as the one before it did; see the "
                        f"router's log. {self._keeps()}"
                    ) from None
            else:
                self._applied = wanted
                return

    @contextmanager
    def _told(self, *, lost: bool = False) -> Iterator[None]:
        """Errors as messages; a lost session only if it is not to be opened again."""
        place = self._access.place
        try:
            yield
        except Refused as error:
            if error.operation == "lock":
                cure = "have it committed or discarded, end that session, or give a longer lock_wait"
                raise TidegateError(
                    f"{place}: somebody else is at work on the router's candidate: {error.message}; {cure}. {self._keeps()}"
                ) from None
            says = SAYS.get(error.operation, f"refuses {error.operation}")
            raise TidegateError(f"{place}: the router {says}: {error.message}. {self._keeps()}") from None
        except Silent as error:
            self._drop()
            waited = units.show_time(round(self._access.timeout_s * PS_PER_S))
            raise TidegateError(
                f"{place}: no answer to {error.operation} within {waited}; give a longer timeout if the router is busy. "
                f"{self._keeps()}"
            ) from None
        except _Differs as error:
            says = (
                "answered ok to the commit, and changed nothing"
                if error.unchanged
                else "committed something else"
            )
            raise TidegateError(
                f"{place}: the router {says}: {error.where} in its running configuration. {self._keeps()}"
            ) from None
        except Lost as error:
            if not lost:
                raise
            raise TidegateError(f"{place}: the session ended during {error.operation}; try again") from None

    def _keeps(self) -> str:
        """Why a failure leaves no half of a configuration."""
        if time.monotonic() < self._open_until:
            return f"Without a confirmation it goes back to its last configuration within {self._confirm_s} s"
        return "It has its last good configuration"

    def _refuse_others(self, data: Any) -> None:
        try:
            config.refuse_others(data, self._settings)
        except TidegateError as error:
            raise TidegateError(f"{self._access.place}: {error}") from None

    # One transaction.

    def _once(self, session: Session, wanted: config.Configuration) -> None:
        session.seconds.clear()
        session.warnings.clear()
        self._lock(session)
        try:
            changed = self._locked(session, wanted)
        except (Refused, _Differs, TidegateError):
            with suppress(Refused, Lost, Silent):
                session.discard()
            raise
        finally:
            with suppress(Refused, Lost, Silent):
                session.unlock()
        self.last = Transaction(changed, dict(session.seconds), tuple(session.warnings))

    def _lock(self, session: Session) -> None:
        until = time.monotonic() + self._lock_wait_s
        while True:
            try:
                return session.lock()
            except Refused:
                if time.monotonic() >= until:
                    raise
            time.sleep(LOCK_PAUSE_S)

    def _locked(self, session: Session, wanted: config.Configuration) -> int:
        """Give how many entries were changed."""
        session.discard()
        data = session.running(config.wanted_filter(self._settings))
        if wanted:
            self._refuse_others(data)
        before = config.found(data, self._settings)
        # A commit of an earlier session may be running without being confirmed: the first transaction of a session writes all.
        steps = config.changes(before, wanted, everything=self._fresh)
        if steps:
            edit = config.edit(steps, data)
            try:
                self._write(session, edit, before, wanted)
            except _Differs as error:
                if not (error.unchanged and self._validates and session.has("validate")):
                    raise
                # Yuma123 loses the edit if it is asked to validate in front of the commit, which validates too.
                self._validates = False
                session.discard()
                self._write(session, edit, before, wanted)
        self._fresh = False
        return len(steps)

    def _write(
        self, session: Session, edit: Any, before: config.Configuration, wanted: config.Configuration
    ) -> None:
        session.edit(edit)
        if self._validates and session.has("validate"):
            session.validate()
        self._open_until = time.monotonic() + self._confirm_s
        try:
            session.commit(self._confirm_s)
        except Refused:
            self._open_until = 0.0
            raise
        try:
            after = config.found(session.running(config.wanted_filter(self._settings)), self._settings)
            if after != wanted:
                raise _Differs(config.difference(after, wanted), unchanged=after == before)
            session.commit()
            self._open_until = 0.0
        except (Refused, _Differs):
            with suppress(Refused, Lost, Silent):
                self._take_back(session)
            raise

    def _take_back(self, session: Session) -> None:
        """Undo a commit that is not confirmed. Where there is no way to, the router does it when the time is over."""
        if session.has("confirmed-commit", "1.1"):
            session.cancel()
            self._open_until = 0.0
        elif any(one.startswith(JUNOS) for one in session.capabilities):
            # It becomes the candidate, and a commit of that is the confirmation.
            session.request(etree.Element(f"{{{BASE}}}load-configuration", rollback="1"))
            session.commit()
            self._open_until = 0.0


def _unit(text: str) -> tuple[str, int]:
    """The interface and the unit of `xe-0/0/0.5`; unit 0 if there is none."""
    interface, _, unit = text.partition(".")
    if not interface or not (unit or "0").isdigit():
        raise TidegateError(f"the unit {text!r}; give an interface, or an interface and a unit as xe-0/0/0.5")
    return interface, int(unit or 0)
