"""What a plan becomes in the configuration of a Junos router, without a router."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tidegate._core import TidegateError
from tidegate.network import FiveTuple
from tidegate.systems.separation.routers import Plan, QueuePlan
from tidegate.systems.separation.routers import junos_config as config

MBIT = 10**6
QUEUE = QueuePlan(30 * MBIT, 300_000)
FLOW = FiveTuple("10.0.0.2", "10.0.1.2", 6, 1000, 443)
SETTINGS = config.Settings(
    "tidegate",
    "xe-0/0/1",
    100 * MBIT,
    (("xe-0/0/0", 0),),
    (0, 1, 2, 4, 5, 6, 7),
    "addresses",
    ipv6=False,
    longest_buffer_us=500_000,
    most_terms=2000,
)
BY_FLOW = replace(SETTINGS, classify="flows")


def running(configuration: config.Configuration) -> etree._Element:
    """A `data` element with this configuration."""
    data = etree.Element("data")
    data.append(config.edit(dict(configuration), etree.Element("data")))
    return data


def scheduler(
    queue: QueuePlan, settings: config.Settings = SETTINGS, *others: QueuePlan
) -> dict[str, config.Value]:
    wanted = config.wanted(Plan((queue, *others), {}), settings, "network-control")
    value = wanted[config.place("class-of-service", ("schedulers", "tidegate-0"))]
    assert isinstance(value, tuple)
    return dict(value)


def terms(
    flows: dict[FiveTuple, int], settings: config.Settings, family: str = "inet"
) -> list[dict[str, list[str]]]:
    """Each term's conditions, and its forwarding class."""
    wanted = config.wanted(Plan((QUEUE,) * 4, flows), settings, "network-control")
    out = []
    root = config.edit(dict(wanted), etree.Element("data"))
    space = {"j": config.XNM}
    for term in root.xpath(f"j:firewall/j:family/j:{family}/j:filter/j:term", namespaces=space):
        found: dict[str, list[str]] = {}
        for one in term.xpath("j:from/* | j:then/*", namespaces=space):
            tag = etree.QName(one).localname
            if tag != "accept":
                found.setdefault(tag, []).append("".join(one.itertext()))
        assert term.xpath("count(j:then/j:accept)", namespaces=space) == 1
        out.append(found)
    return out


@pytest.mark.parametrize(
    ("queue", "settings", "transmit", "shaping"),
    [
        (QUEUE, SETTINGS, (("rate", "30000000"),), None),
        (replace(QUEUE, cap_bps=30 * MBIT), SETTINGS, (("exact", ""), ("rate", "30000000")), None),
        (replace(QUEUE, cap_bps=50 * MBIT), SETTINGS, (("rate", "30000000"),), "50000000"),
        # Queue 3 keeps a twentieth of the link for routing protocols, unless it is one of the plan's.
        (QueuePlan(100 * MBIT, 1), SETTINGS, (("rate", "95000000"),), None),
        (QueuePlan(100 * MBIT, 1, 100 * MBIT), SETTINGS, (("rate", "95000000"),), "100000000"),
        (QueuePlan(100 * MBIT, 1), replace(SETTINGS, queues=tuple(range(8))), (("rate", "100000000"),), None),
        (QueuePlan(200 * MBIT, 1), replace(SETTINGS, queues=tuple(range(8))), (("rate", "100000000"),), None),
        (QueuePlan(10, 1), SETTINGS, (("rate", "3200"),), None),
        (QueuePlan(10, 1, 10), SETTINGS, (("exact", ""), ("rate", "3200")), None),
    ],
)
def test_rates_of_a_queue(
    queue: QueuePlan, settings: config.Settings, transmit: config.Value, shaping: str | None
) -> None:
    found = scheduler(queue, settings)
    assert found["transmit-rate"] == transmit
    assert found.get("shaping-rate") == (None if shaping is None else (("rate", shaping),))


@pytest.mark.parametrize(
    ("rate", "size", "time_us"),
    [
        (30 * MBIT, 300_000, 80_000),
        (1 * MBIT, 48_000, 384_000),
        (1 * MBIT, 10**6, 500_000),
        (30 * MBIT, 0, 1),
    ],
)
def test_a_buffer_is_the_time_it_takes_at_the_queues_rate_up_to_the_line_cards_limit(
    rate: int, size: int, time_us: int
) -> None:
    assert scheduler(QueuePlan(rate, size))["buffer-size"] == (("temporal", str(time_us)),)


def test_pairs_of_hosts_are_where_most_of_their_known_flows_are() -> None:
    flows = {FLOW._replace(source_port=port): queue for port, queue in enumerate((0, 0, 0, 2, 2, 1), 1000)}
    # A tie is the lower queue's; a pair of which nothing is known yet has no term.
    flows |= {FLOW._replace(source="10.0.0.3", source_port=port): queue for port, queue in enumerate((3, 1))}
    flows |= {FLOW._replace(source="10.0.0.4"): 0, FLOW._replace(target="10.0.1.3"): 2}
    one, two, others = terms(flows, SETTINGS)
    assert one == {
        "source-address": ["10.0.0.3/32"],
        "destination-address": ["10.0.1.2/32"],
        "forwarding-class": ["tidegate-1"],
    }
    # The targets of one source in one queue are one term.
    assert two == {
        "source-address": ["10.0.0.2/32"],
        "destination-address": ["10.0.1.2/32", "10.0.1.3/32"],
        "forwarding-class": ["tidegate-2"],
    }
    assert others == {"forwarding-class": ["tidegate-0"]}


@pytest.mark.parametrize(("many", "one"), [("source", "destination"), ("destination", "source")])
def test_flows_that_differ_in_one_port_are_one_term(many: str, one: str) -> None:
    field = "source_port" if many == "source" else "target_port"
    flows = {FLOW._replace(source_port=7, target_port=7)._replace(**{field: port}): 3 for port in (5, 9, 1)}
    term, _ = terms(flows, BY_FLOW)
    assert term == {
        "source-address": ["10.0.0.2/32"],
        "destination-address": ["10.0.1.2/32"],
        "protocol": ["tcp"],
        f"{many}-port": ["1", "5", "9"],
        f"{one}-port": ["7"],
        # The port's queue 3 is that of routing protocols.
        "forwarding-class": ["tidegate-4"],
    }


def test_flows_of_ipv6_and_of_other_protocols() -> None:
    flows = {
        FLOW._replace(source="fd00::2", target="fd00:1::2", protocol=17): 1,
        FLOW._replace(protocol=132): 2,
    }
    settings = replace(BY_FLOW, ipv6=True)
    (four, _), (six, others) = terms(flows, settings), terms(flows, settings, "inet6")
    assert (four["protocol"], four["forwarding-class"]) == (["132"], ["tidegate-2"])
    assert six["source-address"] == ["fd00::2/128"]
    assert six["payload-protocol"] == ["udp"]
    assert others == {"forwarding-class": ["tidegate-0"]}


@pytest.mark.parametrize(
    ("plan", "settings", "why"),
    [
        (
            Plan((QUEUE,) * 8, {}),
            SETTINGS,
            r"8 queues; it may have 7 \(queues 0, 1, 2, 4, 5, 6, 7 of the port's 8\)",
        ),
        (Plan((QUEUE,) * 9, {}), replace(SETTINGS, queues=tuple(range(8))), "9 queues; it may have 8"),
        (
            Plan((QUEUE,), {FLOW._replace(source="fd00::2", target="fd00::3"): 0}),
            SETTINGS,
            "give `ipv6=True`",
        ),
        (Plan((QUEUE,), {FLOW: 1}), SETTINGS, "a flow in queue 1 of a plan with 1 queues"),
        (
            Plan((QUEUE,) * 2, {FLOW._replace(source=f"10.0.0.{host}"): 1 for host in range(1, 11)}),
            replace(SETTINGS, most_terms=10),
            "11 terms in the filter; it may have 10: classify by addresses",
        ),
    ],
)
def test_plans_that_a_port_cannot_have_are_refused(plan: Plan, settings: config.Settings, why: str) -> None:
    with pytest.raises(TidegateError, match=why):
        config.wanted(plan, settings, "network-control")


flows = st.dictionaries(
    st.builds(
        FiveTuple,
        st.sampled_from(["10.0.0.1", "10.0.0.2", "fd00::1"]),
        st.sampled_from(["10.0.1.1", "10.0.1.2"]),
        st.sampled_from([6, 17]),
        st.integers(0, 65535),
        st.integers(0, 65535),
    ).map(lambda flow: flow._replace(target="fd00::9") if ":" in flow.source else flow),
    st.integers(0, 2),
    max_size=8,
)
queues = st.builds(
    QueuePlan,
    st.integers(1, 10**9).map(float),
    st.integers(0, 10**7),
    st.none() | st.integers(1, 10**9).map(float),
)
plans = st.builds(Plan, st.lists(queues, min_size=3, max_size=7).map(tuple), flows)


@given(plans, plans, st.sampled_from(["addresses", "flows"]))
def test_an_edit_leads_from_one_plan_to_the_other(one: Plan, other: Plan, classify: config.Classify) -> None:
    settings = replace(SETTINGS, classify=classify, ipv6=True)
    before, after = (config.wanted(plan, settings, "network-control") for plan in (one, other))
    assert config.found(running(before), settings) == before
    steps = config.changes(before, after)
    merged = {where: value for where, value in ({**before} | steps).items() if value is not None}
    assert merged == after
    assert config.difference(before, before) == "nothing differs"
    assert (before == after) == (steps == {}) == (config.difference(before, after) == "nothing differs")


@given(plans)
def test_rates_of_all_queues_fit_the_link(plan: Plan) -> None:
    wanted = config.wanted(plan, replace(SETTINGS, ipv6=True), "network-control")
    rates = [
        int(dict(dict(value)["transmit-rate"])["rate"])  # type: ignore[arg-type, call-overload]
        for where, value in wanted.items()
        if where[-1][0] == "schedulers"
    ]
    assert sum(rates) <= 100 * MBIT + config.LEAST_BPS * len(rates)


def test_rates_that_the_router_shows_with_a_suffix_are_the_same() -> None:
    wanted = config.wanted(Plan((QueuePlan(30 * MBIT, 1),), {}), SETTINGS, "network-control")
    data = running(wanted)
    for rate in data.iter(f"{{{config.XNM}}}rate"):
        rate.text = f"{int(rate.text) // MBIT}m"
    assert config.found(data, SETTINGS) == wanted


def test_the_class_of_routing_protocols_is_the_routers_own() -> None:
    given = config.place("class-of-service", "forwarding-classes", ("class", "nc"))
    assert config.control_class(running({given: (("queue-num", "3"),)}), SETTINGS) == "nc"
    assert config.control_class(running({given: (("queue-num", "4"),)}), SETTINGS) == "network-control"
    mine = config.place("class-of-service", "forwarding-classes", ("class", "tidegate-3"))
    assert config.control_class(running({mine: (("queue-num", "3"),)}), SETTINGS) == "network-control"
