"""A Junos router's class of service on somebody else's NETCONF server: Debian's `netconfd`, Yuma123's, with our YANG module."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from lxml import etree
from ncclient.operations.errors import TimeoutExpiredError

from junos_cases import (
    BEFORE,
    FLOW,
    MBIT,
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
from netconf_server import BASE, XNM, Place, configuration, netconfd, netconfd_lacks
from tidegate._core import TidegateError
from tidegate.network import FiveTuple
from tidegate.systems.separation.routers import Plan, QueuePlan
from tidegate.systems.separation.routers.netconf import Access, Session


@pytest.fixture(scope="module")
def yuma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Debian's server with our YANG module, and with what an operator has set."""
    lacks = netconfd_lacks()
    if lacks is not None:
        pytest.skip(lacks)
    if os.geteuid() != 0:
        pytest.skip("needs root: sshd logs root in")
    with netconfd(tmp_path_factory.mktemp("netconfd")) as place:
        config = etree.Element(f"{{{BASE}}}config")
        config.append(configuration(SET_BEFORE))
        with another(place) as operator:
            operator.edit_config(config, target="candidate")
            operator.commit()
        yield place


@pytest.fixture
def running(yuma: Place) -> Iterator[Callable[[], Any]]:
    """Reads the running configuration, in which nothing is left after a test."""
    wanted = ("subtree", f'<configuration xmlns="{XNM}"/>')

    def read() -> Any:
        # On a busy machine netconfd once left a session's first request unanswered, for 10 s: then another session asks.
        for last in (False, True):
            with another(yuma) as reader:
                try:
                    return reader.get_config("running", filter=wanted).data_ele[0]
                except TimeoutExpiredError:
                    if last:
                        raise
        raise AssertionError

    assert canonical(read()) == BEFORE
    yield read
    assert canonical(read()) == BEFORE


def rates(running: Any) -> list[str]:
    return at(running, "class-of-service/schedulers/transmit-rate/rate")


def test_netconfd_takes_plans_though_it_loses_what_it_has_validated(
    yuma: Place, running: Callable[[], Any]
) -> None:
    """It answers ok to validate and to the commit behind it, and running is unchanged: read back, noticed, and gone round."""
    with made(yuma) as router:
        router.apply(PLAN)
        assert router.last is not None
        assert {"validate", "cancel-commit"} < set(router.last.seconds)
        assert sorted(rates(running())) == sorted(["2m", "30000000", "30000000", "30000000", "5000000"])
        router.apply(OTHER)
        assert not {"validate", "cancel-commit"} & set(router.last.seconds)
        assert sorted(rates(running())) == sorted(["2m", "20000000", "30000000", "30000000", "5000000"])
        assert at(running(), "firewall/family/inet/filter/term/name") == ["queue-1-1", "queue-2-1", "others"]
        assert at(running(), "interfaces/interface/unit/family/inet/filter/input/filter-name") == ["tidegate"]
        router.apply(Plan((QUEUE,), {}))
        assert sorted(rates(running())) == sorted(["2m", "30000000", "5000000"])


def test_netconfd_takes_a_thousand_flows_of_both_versions(yuma: Place, running: Callable[[], Any]) -> None:
    flows = {
        FiveTuple(f"10.0.{port % 250}.2", "10.9.0.2", 6, port, port): 1 + port % 2
        for port in range(1000, 2000)
    }
    flows |= {FLOW._replace(source="fd00::2", target="fd00:1::2"): 2}
    with made(yuma, classify="flows", ipv6=True) as router:
        router.apply(Plan((QUEUE,) * 3, flows))
        assert len(at(running(), "firewall/family/inet/filter/term")) == 1001
        six = "firewall/family/inet6/filter/term"
        assert at(running(), f"{six}/from/payload-protocol") == ["tcp"]
        assert at(running(), f"{six}/then/forwarding-class") == ["tidegate-2", "tidegate-0"]


def test_netconfd_refuses_a_value_out_of_range_and_keeps_the_plan(
    yuma: Place, running: Callable[[], Any]
) -> None:
    with made(yuma, longest_buffer="2 s") as router:
        router.apply(PLAN)
        good = canonical(running())
        with pytest.raises(
            TidegateError, match=r"refuses the edit: .*range.*temporal.*last good configuration"
        ):
            router.apply(Plan((QUEUE, QueuePlan(1 * MBIT, 10**6)), {}))
        assert canonical(running()) == good
        router.apply(OTHER)
        assert "20000000" in rates(running())


def test_netconfd_has_one_lock(yuma: Place, running: Callable[[], Any]) -> None:
    with made(yuma) as router:
        with another(yuma) as other:
            other.lock("candidate")
            with pytest.raises(
                TidegateError, match=r"somebody else is at work on the router's candidate: .*lock"
            ):
                router.apply(PLAN)
        router.apply(PLAN)
        assert "5000000" in rates(running())


def test_netconfd_ends_the_session_and_it_is_opened_again(yuma: Place, running: Callable[[], Any]) -> None:
    with made(yuma) as router:
        router.apply(PLAN)
        assert router._session is not None
        with another(yuma) as other:
            other.kill_session(router._session._manager.session_id)
        router.apply(OTHER)
        assert "20000000" in rates(running())


@pytest.fixture
def session(yuma: Place, running: Callable[[], Any]) -> Iterator[Session]:
    """One that holds the lock, and has changed something until it is confirmed, within five seconds."""
    one = Session(Access("127.0.0.1", yuma.port, yuma.username, None, yuma.key_filename, yuma.host_key, 10.0))
    try:
        one.lock()
        one.edit(
            configuration("<class-of-service><schedulers><name>x</name></schedulers></class-of-service>")
        )
        one.commit(5)
        assert "x" in at(running(), "class-of-service/schedulers/name")
        yield one
    finally:
        one.close()


def test_netconfd_goes_back_at_once_when_the_session_ends_in_order(
    session: Session, running: Callable[[], Any]
) -> None:
    session.close()
    wait_for(lambda: canonical(running()) == BEFORE)


def test_netconfd_goes_back_when_the_time_is_over(session: Session, running: Callable[[], Any]) -> None:
    # It looks at its clock when nothing has come for a second.
    wait_for(lambda: canonical(running()) == BEFORE, pause=1.2)


def test_netconfd_goes_back_when_the_connection_breaks_off(
    yuma: Place, session: Session, running: Callable[[], Any]
) -> None:
    session.abort()
    wait_for(lambda: canonical(running()) == BEFORE)
    with made(yuma) as router:
        router.apply(PLAN)
        assert "5000000" in rates(running())
