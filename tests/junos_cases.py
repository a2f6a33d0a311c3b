"""What the tests of the Junos router share: plans, what an operator has set, a look at configurations."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from lxml import etree
from ncclient import manager

from netconf_server import XNM, Place, configuration, interfaces
from tidegate.network import FiveTuple
from tidegate.systems.separation.routers import Plan, QueuePlan
from tidegate.systems.separation.routers.junos import JunosRouter

MBIT = 10**6
QUEUE = QueuePlan(30 * MBIT, 300_000)
FLOW = FiveTuple("10.0.0.2", "10.0.1.2", 6, 1000, 443)
PLAN = Plan((QUEUE, QUEUE, QUEUE), {FLOW: 1, FLOW._replace(source="10.0.0.3"): 2})
OTHER = Plan((QUEUE, QueuePlan(20 * MBIT, 50_000), QUEUE), PLAN.flows)
SET_BEFORE = interfaces("xe-0/0/0", "xe-0/0/1") + (
    "<class-of-service><schedulers><name>voice</name><transmit-rate><rate>2m</rate></transmit-rate></schedulers></class-of-service>"
)
"""What an operator has on the router."""


def made(place: Place, **options: Any) -> JunosRouter:
    """A router object for a server."""
    given = {
        "ingress": ["xe-0/0/0"],
        "port": place.port,
        "username": place.username,
        "password": place.password,
        "key_filename": place.key_filename,
        "host_key": place.host_key,
        "timeout": "10 s",
        "lock_wait": "0 s",
    } | options
    host, interface = given.pop("host", "127.0.0.1"), given.pop("interface", "xe-0/0/1")
    return JunosRouter(host, interface, given.pop("rate", "100 Mbit/s"), **given)


def at(running: Any, path: str) -> list[str]:
    """Texts of the elements at a path below `configuration`, names without their namespace."""
    found = running.xpath("/".join(f"j:{step}" for step in path.split("/")), namespaces={"j": XNM})
    return [(one.text or "").strip() for one in found]


def canonical(running: Any) -> str:
    """A configuration without containers that hold nothing, in an order of its own."""

    def of(one: Any) -> tuple[Any, ...]:
        inside = sorted(inner for inner in map(of, one) if inner)
        text = (one.text or "").strip()
        return (etree.QName(one).localname, text, inside) if inside or text else ()

    return repr(of(running))


BEFORE = canonical(configuration(SET_BEFORE))


def wait_for(what: Callable[[], bool], pause: float = 0.005) -> None:
    """Wait until something is so."""
    end = time.monotonic() + 10
    while not what():
        assert time.monotonic() < end, "it has not come"
        time.sleep(pause)


def another(place: Place) -> Any:
    """A session of somebody else's."""
    return manager.connect_ssh(
        host="127.0.0.1",
        port=place.port,
        username=place.username,
        password=place.password,
        key_filename=place.key_filename,
        hostkey_b64=place.host_key,
        allow_agent=False,
        look_for_keys=False,
        timeout=10,
    )
