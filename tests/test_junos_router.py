"""A Junos router's class of service over NETCONF, on a server of our own, whose faults are injected."""

from __future__ import annotations

import atexit
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from ncclient.operations.retrieve import GetReply
from ncclient.operations.rpc import RPCReply

from junos_cases import (
    BEFORE,
    FLOW,
    OTHER,
    PLAN,
    QUEUE,
    SET_BEFORE,
    another,
    at,
    canonical,
    made,
    wait_for,
)
from netconf_server import BASE, USER, XNM, Methods, Place, free_port, ours
from tidegate._core import TidegateError
from tidegate.control.files import load
from tidegate.network import Network
from tidegate.systems import separation as separation_page
from tidegate.systems.separation.controller import SeparationController
from tidegate.systems.separation.routers import Plan, netconf
from tidegate.systems.separation.routers.junos import JunosRouter
from tidegate.systems.separation.routers.netconf import Access, Lost, Session, Silent
from tidegate.systems.separation.setup import separation

EDITED = ["lock", "discard-changes", "get-config", "edit-config"]
COMMITTED = [*EDITED, "validate", "commit-confirmed", "get-config"]
TRANSACTION = [*COMMITTED, "commit", "unlock"]
POINTS = [(operation, TRANSACTION[:number].count(operation)) for number, operation in enumerate(TRANSACTION)]
"""Each operation of a transaction, and how often it was done before."""

Make = Callable[..., JunosRouter]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Methods]]:
    with ours(tmp_path_factory.mktemp("netconf")) as served:
        yield served


@pytest.fixture
def server(own: tuple[Place, Methods]) -> Methods:
    """A router as an operator has left it."""
    own[1].reset(SET_BEFORE)
    return own[1]


@pytest.fixture
def make(own: tuple[Place, Methods], server: Methods) -> Iterator[Make]:
    """Makes router objects; those that are left are disconnected."""
    routers: list[JunosRouter] = []

    def one(**options: Any) -> JunosRouter:
        routers.append(made(own[0], **options))
        server.calls.clear()
        return routers[-1]

    yield one
    server.released.set()
    for router in routers:
        router._drop()


def test_a_plan_becomes_queues_a_map_and_a_filter(make: Make, server: Methods) -> None:
    make().apply(OTHER)
    now = server.running
    classes = "class-of-service/forwarding-classes/class"
    assert at(now, f"{classes}/name") == ["tidegate-0", "tidegate-1", "tidegate-2"]
    assert at(now, f"{classes}/queue-num") == ["0", "1", "2"]
    schedulers = "class-of-service/schedulers"
    assert at(now, f"{schedulers}/name") == ["voice", *(f"tidegate-{one}" for one in (0, 1, 2, "control"))]
    assert at(now, f"{schedulers}/transmit-rate/rate") == ["2m", *(f"{one}000000" for one in (30, 20, 30, 5))]
    # 300 kB at 30 Mbit/s, 50 kB at 20 Mbit/s.
    assert at(now, f"{schedulers}/buffer-size/temporal") == ["80000", "20000", "80000"]
    mapped = "class-of-service/scheduler-maps/forwarding-class"
    assert at(now, f"{mapped}/name") == ["network-control", "tidegate-0", "tidegate-1", "tidegate-2"]
    assert at(now, f"{mapped}/scheduler") == ["tidegate-control", "tidegate-0", "tidegate-1", "tidegate-2"]
    assert at(now, "class-of-service/interfaces/interface/name") == ["xe-0/0/1"]
    assert at(now, "class-of-service/interfaces/interface/scheduler-map") == ["tidegate"]
    term = "firewall/family/inet/filter/term"
    assert at(now, f"{term}/name") == ["queue-1-1", "queue-2-1", "others"]
    assert at(now, f"{term}/from/source-address/name") == ["10.0.0.2/32", "10.0.0.3/32"]
    assert at(now, f"{term}/then/forwarding-class") == ["tidegate-1", "tidegate-2", "tidegate-0"]
    family = "interfaces/interface/unit/family/inet"
    assert at(now, f"{family}/filter/input/filter-name") == ["tidegate"]
    assert at(now, f"{family}/address/name") == ["10.0.0.1/24", "10.0.1.1/24"]


def test_a_plan_is_one_transaction_that_is_read_back_before_it_is_confirmed(
    make: Make, server: Methods
) -> None:
    router = make(confirm_timeout="90 s")
    router.apply(PLAN)
    assert server.calls == TRANSACTION
    assert server.timeouts == ["90"]
    assert server.before is None
    assert router.last is not None
    assert set(router.last.seconds) == set(TRANSACTION)
    assert 0 < router.last.commit_s == router.last.seconds["commit-confirmed"]
    assert router.last.changed == 11


def test_plans_that_change_nothing_send_nothing(make: Make, server: Methods) -> None:
    router = make()
    router.apply(PLAN)
    server.calls.clear()
    router.apply(PLAN)
    # By addresses, a second flow of a pair has its term already.
    router.apply(Plan(PLAN.queues, {**PLAN.flows, FLOW._replace(source_port=1001): 1}))
    assert server.calls == []


def test_what_differs_is_written_and_nothing_else(make: Make, server: Methods) -> None:
    router = make()
    router.apply(PLAN)
    router.apply(OTHER)
    assert at(server.edits[-1], "class-of-service/schedulers/name") == ["tidegate-1"]
    assert len(server.edits[-1].xpath("*/*")) == 1
    assert router.last is not None
    assert router.last.changed == 1


def test_queues_that_are_no_longer_planned_vanish(make: Make, server: Methods) -> None:
    router = make()
    router.apply(PLAN)
    router.apply(Plan((QUEUE,), {}))
    assert at(server.running, "class-of-service/schedulers/name") == [
        "voice",
        "tidegate-0",
        "tidegate-control",
    ]
    assert at(server.running, "class-of-service/forwarding-classes/class/name") == ["tidegate-0"]
    assert at(server.running, "firewall/family/inet/filter/term/name") == ["others"]


def test_closing_leaves_the_router_as_it_was(make: Make, server: Methods) -> None:
    with make() as router:
        router.apply(PLAN)
        assert canonical(server.running) != BEFORE
    assert canonical(server.running) == BEFORE
    assert server.before is None
    server.calls.clear()
    router.close()
    assert server.calls == []
    with pytest.raises(TidegateError, match="is closed; make a new one"):
        router.apply(PLAN)


def test_a_router_that_was_never_set_is_left_alone(make: Make, server: Methods) -> None:
    make().close()
    assert server.calls == ["lock", "discard-changes", "get-config", "unlock"]
    assert canonical(server.running) == BEFORE


def test_what_a_killed_process_has_left_is_replaced_by_the_next(make: Make, server: Methods) -> None:
    make().apply(Plan((QUEUE,) * 5, {}))
    # Its session ends, and nobody cleans up.
    server.sessions[-1].pkt_stream.stream.get_transport().close()
    with make() as router:
        router.apply(PLAN)
        names = ["voice", *(f"tidegate-{one}" for one in (0, 1, 2, "control"))]
        assert sorted(at(server.running, "class-of-service/schedulers/name")) == sorted(names)
    assert canonical(server.running) == BEFORE


def test_two_ports_of_one_router_have_names_of_their_own(make: Make, server: Methods) -> None:
    with make(name="east") as east:
        east.apply(PLAN)
        alone = canonical(server.running)
        with make(name="west", interface="xe-0/0/0", ingress=["xe-0/0/1"]) as west:
            west.apply(OTHER)
            maps = at(server.running, "class-of-service/interfaces/interface/scheduler-map")
            assert maps == ["east", "west"]
        assert canonical(server.running) == alone
    assert canonical(server.running) == BEFORE


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            "</inet>",
            "<filter><input><filter-name>acl</filter-name></input></filter></inet>",
            r"xe-0/0/0.0 has a filter, 'acl', that somebody has set; remove it with `delete interfaces xe-0/0/0 unit 0",
        ),
        (
            "</inet>",
            "<filter><input-list>acl</input-list></filter></inet>",
            "xe-0/0/0.0 has a filter, 'acl'",
        ),
        (
            "</class-of-service>",
            "<interfaces><interface><name>xe-0/0/1</name><scheduler-map>m</scheduler-map></interface></interfaces></class-of-service>",
            "xe-0/0/1 has the scheduler map 'm' that somebody has set; remove it with",
        ),
        ("xe-0/0/1", "xe-0/0/7", "no interface xe-0/0/1 in its configuration; check the name"),
        ("xe-0/0/0", "xe-0/0/7", "has no `interfaces xe-0/0/0 unit 0 family inet`; give units"),
    ],
)
def test_what_somebody_else_has_set_stays(make: Make, server: Methods, old: str, new: str, why: str) -> None:
    assert old in SET_BEFORE
    server.reset(SET_BEFORE.replace(old, new))
    before = server.text()
    with pytest.raises(TidegateError, match=why):
        make()
    assert server.text() == before
    assert "edit-config" not in server.calls


def test_a_filter_for_what_leaves_is_not_in_the_way(make: Make, server: Methods) -> None:
    output = "<filter><output><filter-name>out</filter-name></output></filter></inet>"
    defined = "<firewall><family><inet><filter><name>out</name></filter></inet></family></firewall>"
    server.reset(SET_BEFORE.replace("</inet>", output) + defined)
    before = canonical(server.running)
    with make() as router:
        router.apply(PLAN)
        assert at(server.running, "interfaces/interface/unit/family/inet/filter/input/filter-name") == [
            "tidegate"
        ]
    assert canonical(server.running) == before


def test_a_map_that_somebody_sets_meanwhile_is_refused_and_kept_at_the_end(
    make: Make, server: Methods
) -> None:
    gold = "<class-of-service><scheduler-maps><name>gold</name></scheduler-maps>"
    server.reset(SET_BEFORE.replace("<class-of-service>", gold))
    router = make()
    router.apply(PLAN)
    (leaf,) = server.running.iter(f"{{{XNM}}}scheduler-map")
    leaf.text = "gold"
    with pytest.raises(TidegateError, match="has the scheduler map 'gold' that somebody has set"):
        router.apply(OTHER)
    wait_for(lambda: server.server.session_locks["candidate"] == 0)
    router.close()
    assert at(server.running, "class-of-service/interfaces/interface/scheduler-map") == ["gold"]
    assert at(server.running, "class-of-service/schedulers/name") == ["voice"]
    assert at(server.running, "class-of-service/scheduler-maps/name") == ["gold"]


LATE = [
    (
        "commit-confirmed",
        "garble",
        "committed something else: `class-of-service schedulers .*` is missing",
        COMMITTED,
    ),
    ("commit", "refuse", "refuses to confirm the commit: out of order", [*COMMITTED, "commit"]),
]


@pytest.mark.parametrize(
    ("operation", "kind", "why", "calls", "junos"),
    [
        (*case, False)
        for case in [
            ("lock", "refuse", "somebody else is at work on the router's candidate: out of order", ["lock"]),
            ("edit-config", "refuse", "the router refuses the edit: out of order", EDITED),
            ("edit-config", "partial", "the router refuses the edit: out of order", EDITED),
            (
                "validate",
                "refuse",
                "the router refuses the configuration: out of order",
                [*EDITED, "validate"],
            ),
            ("commit-confirmed", "refuse", "the router refuses the commit: out of order", COMMITTED[:-1]),
            *LATE,
        ]
    ]
    + [(*case, True) for case in LATE],
)
def test_a_transaction_that_fails_leaves_the_last_good_configuration(
    make: Make, server: Methods, operation: str, kind: str, why: str, calls: list[str], junos: bool
) -> None:
    server.reset(SET_BEFORE, junos=junos)
    router = make()
    router.apply(PLAN)
    good = server.text()
    server.calls.clear()
    server.fail(operation, kind)
    with pytest.raises(
        TidegateError, match=f"^127.0.0.1:[0-9]+: .*{why}.*It has its last good configuration$"
    ):
        router.apply(OTHER)
    assert server.text() == good
    assert canonical(server.candidate) == canonical(server.running)
    assert server.before is None
    wait_for(lambda: server.server.session_locks["candidate"] == 0)
    way_back = ["load-configuration", "commit"] if junos else ["cancel-commit"]
    undone = way_back if "get-config" in calls[3:] else []
    discarded = [] if calls == ["lock"] else ["discard-changes"]
    assert server.calls == [*calls, *undone, *discarded, *(["unlock"] if discarded else [])]
    # And it can be set again.
    router.apply(OTHER)
    assert "20000000" in at(server.running, "class-of-service/schedulers/transmit-rate/rate")


def test_an_ok_to_a_commit_that_changed_nothing_is_noticed_and_tried_without_validate(
    make: Make, server: Methods
) -> None:
    router = make()
    server.fail("commit-confirmed", "lie")
    router.apply(PLAN)
    again = [
        "cancel-commit",
        "discard-changes",
        "edit-config",
        "commit-confirmed",
        "get-config",
        "commit",
        "unlock",
    ]
    assert server.calls == [*COMMITTED, *again]
    assert "tidegate-2" in at(server.running, "class-of-service/schedulers/name")
    server.calls.clear()
    router.apply(OTHER)
    assert server.calls == [one for one in TRANSACTION if one != "validate"]


def test_an_ok_to_a_commit_that_changes_nothing_twice_is_an_error(make: Make, server: Methods) -> None:
    router = make()
    router.apply(PLAN)
    good = server.text()
    server.fail("commit-confirmed", "lie", times=2)
    with pytest.raises(
        TidegateError, match="answered ok to the commit, and changed nothing: `class-of-service schedulers"
    ):
        router.apply(OTHER)
    assert server.text() == good
    router.apply(OTHER)
    assert server.text() != good


@pytest.mark.parametrize(
    ("operation", "before", "kind", "junos"),
    [(*point, "drop", False) for point in POINTS if point[0] not in ("discard-changes", "unlock")]
    + [(*point, "drop after", False) for point in POINTS[-4:]]
    # Here a commit that is not confirmed outlives its session.
    + [(*point, "drop after", True) for point in POINTS[-4:-1]],
)
def test_a_session_that_is_lost_is_opened_again_and_the_transaction_starts_anew(
    make: Make, server: Methods, operation: str, before: int, kind: str, junos: bool
) -> None:
    server.reset(SET_BEFORE, junos=junos)
    router = make()
    router.apply(PLAN)
    server.fail(operation, kind, after=before)
    router.apply(OTHER)
    assert not any(fault.kind == kind for fault in server.faults[operation])
    assert at(server.running, "class-of-service/schedulers/transmit-rate/rate")[2] == "20000000"
    # It is confirmed: nothing goes back when a time is over.
    server.expire()
    assert at(server.running, "class-of-service/schedulers/transmit-rate/rate")[2] == "20000000"
    wait_for(lambda: server.server.session_locks["candidate"] == 0)
    server.calls.clear()
    router.apply(PLAN)
    assert "commit" in server.calls


def test_a_session_that_is_lost_again_is_an_error_and_the_router_goes_back(
    make: Make, server: Methods
) -> None:
    router = make()
    router.apply(PLAN)
    good = server.text()
    server.fail("commit-confirmed", "drop after", times=2)
    why = "the session ended during commit-confirmed, as the one before it did; .*goes back to its last configuration within 120 s"
    with pytest.raises(TidegateError, match=why):
        router.apply(OTHER)
    assert server.text() == good
    router.apply(OTHER)
    assert server.text() != good


@pytest.mark.parametrize(("operation", "before"), [POINTS[0], *POINTS[3:-1]])
def test_a_router_that_does_not_answer_in_time_goes_back(
    make: Make, server: Methods, operation: str, before: int
) -> None:
    router = make()
    router.apply(PLAN)
    good = server.text()
    router._session._manager.timeout = 0.5  # type: ignore[union-attr]
    server.fail(operation, "slow", after=before)
    with pytest.raises(TidegateError, match=f"no answer to {operation} within 10 s; give a longer timeout"):
        router.apply(OTHER)
    server.released.set()
    wait_for(lambda: server.server.session_locks["candidate"] == 0)
    if operation != "commit":
        assert server.text() == good
    # The one to come finds the way by itself.
    router.apply(PLAN)
    router.apply(OTHER)
    assert at(server.running, "class-of-service/schedulers/transmit-rate/rate")[2] == "20000000"
    assert server.before is None


def test_a_candidate_that_is_locked_is_waited_for(
    make: Make, server: Methods, own: tuple[Place, Methods]
) -> None:
    router, patient = make(), make(lock_wait="10 s")
    with another(own[0]) as other:
        other.lock("candidate")
        with pytest.raises(
            TidegateError, match=r"somebody else is at work .*\(session \d+\); have it committed or discarded"
        ):
            router.apply(PLAN)
        assert canonical(server.running) == BEFORE
        # The other one lets go at the patient one's second try.
        server.calls.clear()
        refused = JunosRouter._lock

        def let_go(self: JunosRouter, session: Session) -> None:
            other.unlock("candidate")
            refused(self, session)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(JunosRouter, "_lock", let_go)
            patient.apply(PLAN)
    assert canonical(server.running) != BEFORE


def access(place: Place, timeout_s: float = 10) -> Access:
    return Access("127.0.0.1", place.port, USER, place.password, None, place.host_key or None, timeout_s)


@pytest.fixture
def session(own: tuple[Place, Methods], server: Methods) -> Iterator[Session]:
    """One that holds the lock."""
    one = Session(access(own[0]))
    one.lock()
    yield one
    one.abort()


def test_nothing_is_sent_on_a_session_that_is_lost(
    session: Session, server: Methods, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.fail("validate", "drop")
    with pytest.raises(Lost):
        session.validate()
    # ncclient may take it still, and would wait for an answer that nobody gives.
    monkeypatch.setattr(session._manager, "unlock", lambda target: pytest.fail("it was sent"), raising=False)
    with pytest.raises(Lost):
        session.unlock()


def test_a_session_that_is_silent_is_ended_and_its_lock_released(session: Session, server: Methods) -> None:
    session._manager.timeout = 0.2
    server.fail("validate", "slow")
    with pytest.raises(Silent):
        session.validate()
    assert server.server.session_locks["candidate"] != 0
    server.released.set()
    wait_for(lambda: server.server.session_locks["candidate"] == 0)
    with pytest.raises(Lost):
        session.unlock()


@pytest.mark.parametrize("text", ["<rpc-reply><ok></rpc-reply>", "", "<rpc-reply>" + "<a>" * 1000])
def test_an_answer_that_is_no_xml_ends_the_session(
    session: Session, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("validate", "close_session"):
        monkeypatch.setattr(session._manager, name, lambda *_: RPCReply(text), raising=False)
    with pytest.raises(Lost, match="validate"):
        session.validate()
    session.close()
    with pytest.raises(Lost, match="lock"):
        session.lock()


def test_an_answer_without_data_ends_the_session(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = f'<rpc-reply xmlns="{BASE}" message-id="1"><ok/></rpc-reply>'
    monkeypatch.setattr(session._manager, "get_config", lambda *_, **__: GetReply(empty), raising=False)
    with pytest.raises(Lost, match="get-config"):
        session.running(etree.Element("configuration"))
    with pytest.raises(Lost, match="lock"):
        session.lock()


def test_an_answer_that_is_too_long_ends_the_session(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netconf, "MOST_ANSWER", 10)
    with pytest.raises(Lost, match="unlock"):
        session.unlock()


def test_a_hello_that_is_too_long_is_no_session(
    own: tuple[Place, Methods], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, server = own
    long = "urn:x:" + "x" * (20 << 20)

    def append(capabilities: Any) -> None:
        etree.SubElement(capabilities, f"{{{BASE}}}capability").text = long

    monkeypatch.setattr(server, "nc_append_capabilities", append)
    with pytest.raises(TidegateError, match="no NETCONF session: an answer of more than 16777216 bytes"):
        Session(access(place))


def test_a_server_that_says_nothing_is_no_session() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = Place(silent.getsockname()[1], "", USER)
        with pytest.raises(TidegateError, match=r"no NETCONF session: none within 0\.2 s"):
            Session(access(place, 0.2))


def test_warnings_are_kept_and_refuse_nothing(make: Make, server: Methods) -> None:
    router = make()
    server.fail("commit-confirmed", "warn", message="the sum of rates is above the port's")
    router.apply(PLAN)
    assert router.last is not None
    assert router.last.warnings == ("the sum of rates is above the port's",)
    assert server.before is None


def test_an_error_behind_a_warning_is_an_error(make: Make, server: Methods) -> None:
    router = make()
    server.fail("commit-confirmed", "warn and refuse", message="not that")
    with pytest.raises(TidegateError, match="refuses the commit: not that"):
        router.apply(PLAN)
    assert canonical(server.running) == BEFORE


def test_a_router_that_refuses_to_be_cleaned_up_keeps_its_queues(make: Make, server: Methods) -> None:
    router = make()
    router.apply(PLAN)
    good = server.text()
    server.fail("commit-confirmed", "refuse")
    with pytest.raises(TidegateError, match=r"refuses the commit.*; the queues of xe-0/0/1 stay as they are"):
        router.close()
    assert server.text() == good


def test_rates_with_suffixes_are_read_back(make: Make, server: Methods) -> None:
    server.reset(SET_BEFORE, junos=True)
    router = make()
    router.apply(PLAN)
    assert server.calls == TRANSACTION


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"host": "name.invalid"}, r"name.invalid:\d+: .*; check the router's name"),
        (
            {"port": 0},
            r"no NETCONF session: .*; check the address and the port, and that the router has `set system services",
        ),
        ({"password": "wrong"}, "refuses the user 'operator'; check the name, and the password or the key"),
        ({"host_key": None}, "host key [0-9a-f:]+ is not the known one; .* ssh-keyscan -p"),
        ({"rate": 0}, "a rate of 0 bit/s; give 3200 bit/s or more"),
        ({"ingress": []}, "no ingress; give the interfaces that packets come in by"),
        ({"ingress": ["xe-0/0/0.x"]}, "the unit 'xe-0/0/0.x'; give an interface, or"),
        ({"queues": (0, 8)}, "a port of Junos has 8, give different numbers from 0 to 7"),
        ({"queues": (1, 1)}, "give different numbers"),
        ({"classify": "ports"}, "classify is 'ports'; give addresses or flows"),
        ({"name": "a b"}, "the name 'a b'; give a letter"),
        ({"most_terms": 0}, "give 1 us or more, and 1 or more"),
        ({"confirm_timeout": "1 s"}, "the confirm_timeout 1 s is shorter than the timeout 10 s"),
    ],
)
def test_refused(make: Make, server: Methods, options: dict[str, Any], why: str) -> None:
    if options.get("port") == 0:
        options = {"port": free_port()}
    with pytest.raises(TidegateError, match=why):
        make(**options)
    assert "lock" not in server.calls


def test_a_server_without_confirmed_commits_is_refused(
    make: Make, server: Methods, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "nc_append_capabilities", lambda capabilities: None)
    with pytest.raises(TidegateError, match="the NETCONF server lacks candidate and confirmed-commit"):
        make()


def test_a_plan_that_the_port_cannot_have_sends_nothing(make: Make, server: Methods) -> None:
    with pytest.raises(TidegateError, match="8 queues; it may have 7"):
        make().apply(Plan((QUEUE,) * 8, {}))
    assert server.calls == []


def test_the_controller_sets_the_router(make: Make, server: Methods) -> None:
    net = Network()
    s1, r1, r2 = net.router("s1"), net.router("r1"), net.router("r2")
    before = net.link(s1, r1, rate="1 Gbit/s", delay="10 us")
    after = net.link(r1, r2, rate="50 Mbit/s", delay="10 us")
    for number, rtt_ms in enumerate((10, 40)):
        a, b = net.host(f"a{number}"), net.host(f"b{number}")
        net.link(a, s1, rate="1 Gbit/s", delay="10 us")
        net.link(b, r2, rate="1 Gbit/s", delay=f"{rtt_ms / 2} ms")
        net.tcp(a, b)
    controller = separation(net, "monitor", r1, before, after, buffer="250 kB", classes=2, long_bytes=0)
    router = make(rate="50 Mbit/s", classify="flows")
    controller.router = router
    net.run("4 s")
    assert controller.plan is not None
    mine = [f"tidegate-{router._settings.queues[queue]}" for queue in range(len(controller.plan.queues))]
    assert at(server.running, "class-of-service/forwarding-classes/class/name") == mine
    of = sorted(f"tidegate-{queue}" for queue in controller.plan.flows.values())
    assert sorted(at(server.running, "firewall/family/inet/filter/term/then/forwarding-class")) == sorted(
        ["tidegate-0", *of]
    )
    assert of == ["tidegate-1", "tidegate-2"]


def test_the_example_of_the_page_connects(
    own: tuple[Place, Methods], server: Methods, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(separation_page.__file__).parent / "README.md").read_text()
    (code,) = re.findall(r"```python\n(# separate.py\n.*?)```", page, re.DOTALL)
    place, at_end = own[0], []
    there = {
        '"192.0.2.1"': '"127.0.0.1"',
        'username="tidegate"': f'username="{place.username}", password="{place.password}"',
        'key_filename="/etc/tidegate/router"': f'host_key="{place.host_key}", port={place.port}',
    }
    for old, new in there.items():
        assert old in code
        code = code.replace(old, new)
    file = tmp_path / "separate.py"
    file.write_text(code)
    monkeypatch.setattr(atexit, "register", at_end.append)
    (controller,) = load(file)
    assert isinstance(controller, SeparationController)
    controller.router.apply(PLAN)
    (close,) = at_end
    assert canonical(server.running) != BEFORE
    close()
    assert canonical(server.running) == BEFORE


def test_ncclient_is_imported_when_a_router_is_connected_to() -> None:
    words = "import sys, tidegate.systems.separation.routers.junos\nassert 'ncclient' not in sys.modules and 'paramiko' not in sys.modules"
    subprocess.run([sys.executable, "-c", words], check=True)
