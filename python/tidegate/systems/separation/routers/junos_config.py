"""Class of service of Junos as values: what a plan asks for, what a configuration has of it, and the edit from one to the other.

A configuration is a mapping from places to values. A place is a path of tags, each with the name of the list entry if it is one; a
value is text, or a tuple of tags and values. `wanted` makes one of a plan, `found` reads one from the running configuration, `edit`
makes the XML that leads from one to the other. All that is ours bears the name of the router object, or is a leaf that refers to it:

| place | what |
|---|---|
| `class-of-service forwarding-classes class NAME-Q` | a class for queue Q of the port |
| `class-of-service schedulers NAME-Q` | `transmit-rate` (bit/s), `exact` or `shaping-rate` for a cap, `buffer-size temporal` (us) |
| `class-of-service scheduler-maps NAME` | the scheduler of each class |
| `class-of-service interfaces IF scheduler-map` | the map of the port |
| `firewall family inet filter NAME`, `inet6` | terms: flows to classes; the last one takes all others |
| `interfaces IF unit U family inet filter input` | the filter, where packets come in |

Sources: Juniper's CLI reference for `schedulers`, `scheduler-maps`, `forwarding-classes` and "Firewall Filter Match Conditions";
"Scheduler Delay Buffering on MIC and MPC Interfaces" for the longest buffers.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lxml import etree

from tidegate._core import TidegateError
from tidegate.network import FiveTuple
from tidegate.systems.separation.routers import Plan, QueuePlan
from tidegate.systems.separation.routers.netconf import BASE

XNM = "http://xml.juniper.net/xnm/1.1/xnm"
OPERATION = f"{{{BASE}}}operation"

PORT_QUEUES = 8
CONTROL_QUEUE, CONTROL_CLASS, CONTROL_PART = 3, "network-control", 0.05
"""The queue of routing protocols, its class where the router has no other for it, and its part of the link: Junos's defaults."""
LEAST_BPS = 3200
"""The smallest `transmit-rate`."""
PROTOCOLS = {6: "tcp", 17: "udp"}
SUFFIXES = {"k": 10**3, "m": 10**6, "g": 10**9}
FAMILIES = {4: "inet", 6: "inet6"}

Classify = Literal["addresses", "flows"]
Step: TypeAlias = tuple[str, str | None]
Place: TypeAlias = tuple[Step, ...]
Value: TypeAlias = "str | tuple[tuple[str, Value], ...]"
Configuration: TypeAlias = Mapping[Place, Value]


@dataclass(frozen=True)
class Settings:
    """Which part of a router's configuration is ours."""

    name: str
    interface: str
    rate_bps: int
    ingress: tuple[tuple[str, int], ...]
    """Interfaces and units whose packets are classified."""
    queues: tuple[int, ...]
    """Numbers of the port's queues, in the order of a plan's."""
    classify: Classify
    ipv6: bool
    longest_buffer_us: int
    most_terms: int

    @property
    def families(self) -> tuple[str, ...]:
        """Those with a filter."""
        return ("inet", "inet6") if self.ipv6 else ("inet",)

    def ours(self, name: str | None) -> bool:
        """Whether a forwarding class or scheduler is ours."""
        return re.fullmatch(rf"{re.escape(self.name)}-(\d|control)", name or "") is not None


def place(*steps: str | Step) -> Place:
    """A path; a step that is a list entry is its tag and its name."""
    return tuple((step, None) if isinstance(step, str) else step for step in steps)


def shown(where: Place) -> str:
    """A path as the command line of Junos has it, where interfaces have no tag of their own."""
    words = (step[1:] if step[0] == "interface" else step for step in where)
    return " ".join(word for step in words for word in step if word is not None)


def map_place(settings: Settings) -> Place:
    """Of the leaf that gives the port its scheduler map."""
    return place("class-of-service", "interfaces", ("interface", settings.interface), "scheduler-map")


def filter_places(settings: Settings) -> list[Place]:
    """Of the leaves that put the filters where packets come in."""
    return [
        place(
            "interfaces", ("interface", interface), ("unit", str(unit)), "family", family, "filter", "input"
        )
        + place("filter-name")
        for interface, unit in settings.ingress
        for family in settings.families
    ]


# What a plan asks for.


def wanted(plan: Plan, settings: Settings, control_class: str) -> Configuration:
    """The configuration that a plan asks for.

    Raises `TidegateError` for a plan with more queues than the port has for it, with flows of IPv6 where there is no filter for them,
    and with more terms than there may be.
    """
    if len(plan.queues) > len(settings.queues):
        raise TidegateError(
            f"{settings.interface}: {len(plan.queues)} queues; it may have {len(settings.queues)} "
            f"(queues {', '.join(map(str, settings.queues))} of the port's {PORT_QUEUES})"
        )
    versions = _versions(plan, settings)
    used = settings.queues[: len(plan.queues)]
    schedulers = dict(zip(used, _schedulers(plan.queues, settings), strict=True))
    out: dict[Place, Value] = {}
    classes = "class-of-service", "forwarding-classes"
    for queue in used:
        name = f"{settings.name}-{queue}"
        out[place(*classes, ("class", name))] = (("queue-num", str(queue)),)
        out[place("class-of-service", ("schedulers", name))] = schedulers[queue]
    mapped = [(f"{settings.name}-{queue}", f"{settings.name}-{queue}") for queue in used]
    if CONTROL_QUEUE not in settings.queues:
        control = f"{settings.name}-control"
        percent = str(round(CONTROL_PART * 100))
        rate = str(max(LEAST_BPS, int(settings.rate_bps * CONTROL_PART)))
        out[place("class-of-service", ("schedulers", control))] = _sorted(
            [("transmit-rate", (("rate", rate),)), ("buffer-size", (("percent", percent),))]
        )
        mapped.append((control_class, control))
    out[place("class-of-service", ("scheduler-maps", settings.name))] = _sorted(
        ("forwarding-class", _sorted([("name", one), ("scheduler", scheduler)])) for one, scheduler in mapped
    )
    out[map_place(settings)] = settings.name
    for version, flows in versions.items():
        terms = _terms(flows, version, settings)
        out[place("firewall", "family", FAMILIES[version], ("filter", settings.name))] = _sorted(terms)
    out |= dict.fromkeys(filter_places(settings), settings.name)
    return out


def _versions(plan: Plan, settings: Settings) -> dict[int, dict[FiveTuple, int]]:
    """A plan's flows that are not in its first queue, by the version of IP."""
    versions: dict[int, dict[FiveTuple, int]] = {4: {}, 6: {}} if settings.ipv6 else {4: {}}
    for flow, queue in plan.flows.items():
        version = 6 if ":" in flow.source else 4
        if version not in versions:
            raise TidegateError(
                f"{settings.interface}: a flow of IPv6, {flow.source} to {flow.target}; give `ipv6=True`, and the interfaces where "
                "packets come in get a filter of the family inet6 too"
            )
        if not 0 <= queue < len(plan.queues):
            raise TidegateError(f"a flow in queue {queue} of a plan with {len(plan.queues)} queues")
        versions[version][flow] = queue
    return versions


def _schedulers(queues: tuple[QueuePlan, ...], settings: Settings) -> list[Value]:
    """Of each queue. Their rates have the link's sum at most, less what is kept for routing protocols."""
    kept = 0.0 if CONTROL_QUEUE in settings.queues else CONTROL_PART
    asked = sum(queue.rate_bps for queue in queues)
    part = min(1.0, settings.rate_bps * (1 - kept) / asked) if asked else 1.0
    out: list[Value] = []
    for queue in queues:
        rate = max(LEAST_BPS, int(queue.rate_bps * part))
        values: list[tuple[str, Value]] = []
        if queue.cap_bps is None:
            transmit: Value = (("rate", str(rate)),)
        else:
            cap = max(LEAST_BPS, int(queue.cap_bps))
            rate = min(rate, cap)
            if rate == cap:
                transmit = _sorted([("rate", str(rate)), ("exact", "")])
            else:
                transmit = (("rate", str(rate)),)
                values.append(("shaping-rate", (("rate", str(cap)),)))
        # Of the time that the buffer takes at the queue's rate.
        time_us = -(-queue.buffer_bytes * 8 * 10**6 // rate)
        time_us = max(1, min(time_us, settings.longest_buffer_us))
        values += [("transmit-rate", transmit), ("buffer-size", (("temporal", str(time_us)),))]
        out.append(_sorted(values))
    return out


def _terms(flows: Mapping[FiveTuple, int], version: int, settings: Settings) -> list[tuple[str, Value]]:
    """A term for each set of flows with a queue, and the last one for all others."""
    if settings.classify == "addresses":
        matches = _by_addresses(flows)
    else:
        matches = min(_by_ports(flows, "source"), _by_ports(flows, "target"), key=len)
    if len(matches) + 1 > settings.most_terms:
        cure = "classify by addresses, or give more `long_bytes`, or more `most_terms`"
        raise TidegateError(
            f"{settings.interface}: {len(matches) + 1} terms in the filter; it may have {settings.most_terms}: {cure}"
        )
    counts: Counter[int] = Counter()
    out: list[tuple[str, Value]] = []
    for queue, conditions in matches:
        counts[queue] += 1
        name = f"queue-{settings.queues[queue]}-{counts[queue]}"
        out.append(("term", _term(name, queue, settings, _from(conditions, version))))
    out.append(("term", _term("others", 0, settings, None)))
    return out


def _term(name: str, queue: int, settings: Settings, conditions: Value | None) -> Value:
    then = _sorted([("forwarding-class", f"{settings.name}-{settings.queues[queue]}"), ("accept", "")])
    values: list[tuple[str, Value]] = [("name", name), ("then", then)]
    if conditions is not None:
        values.append(("from", conditions))
    return _sorted(values)


Conditions: TypeAlias = list[tuple[str, str]]


def _by_addresses(flows: Mapping[FiveTuple, int]) -> list[tuple[int, Conditions]]:
    """Pairs of hosts, one source and all its targets of a queue together. A pair is where most of its flows are."""
    votes: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for flow, queue in flows.items():
        votes[flow.source, flow.target][queue] += 1
    targets: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for (source, target), counts in votes.items():
        # Queue 0 has flows that are not known yet: those that are speak for them.
        named = {queue: count for queue, count in counts.items() if queue}
        if named:
            queue = min(named, key=lambda one: (-named[one], one))
            targets[queue, source].append(target)
    return [
        (queue, [("source", source), *(("target", one) for one in sorted(targets[queue, source]))])
        for queue, source in sorted(targets)
    ]


def _by_ports(
    flows: Mapping[FiveTuple, int], many: Literal["source", "target"]
) -> list[tuple[int, Conditions]]:
    """5-tuples, those that differ only in the source's or the target's port together."""
    ports: defaultdict[tuple[int, str, str, int, int], list[int]] = defaultdict(list)
    for flow, queue in flows.items():
        if queue:
            one, several = flow.target_port, flow.source_port
            if many == "target":
                one, several = several, one
            ports[queue, flow.source, flow.target, flow.protocol, one].append(several)
    other = "target" if many == "source" else "source"
    return [
        (
            key[0],
            [
                ("source", key[1]),
                ("target", key[2]),
                ("protocol", PROTOCOLS.get(key[3], str(key[3]))),
                (f"{other}-port", str(key[4])),
                *((f"{many}-port", str(port)) for port in sorted(ports[key])),
            ],
        )
        for key in sorted(ports)
    ]


def _from(conditions: Conditions, version: int) -> Value:
    names = {
        "protocol": "protocol" if version == 4 else "payload-protocol",
        "source-port": "source-port",
        "target-port": "destination-port",
    }
    out: list[tuple[str, Value]] = []
    for kind, text in conditions:
        if kind in ("source", "target"):
            address = str(ipaddress.ip_network(text))
            tag = "source-address" if kind == "source" else "destination-address"
            out.append((tag, (("name", address),)))
        else:
            out.append((names[kind], text))
    return _sorted(out)


# What a configuration has.


def wanted_filter(settings: Settings) -> Any:
    """The subtree filter for all that `found`, `control_class` and `refuse_others` look at."""
    root = _element("configuration")
    service = etree.SubElement(root, _tag("class-of-service"))
    for tag in ("forwarding-classes", "schedulers", "scheduler-maps"):
        etree.SubElement(service, _tag(tag))
    _reach(root, map_place(settings)[:-1])
    for family in settings.families:
        _reach(root, place("firewall", "family", family, ("filter", settings.name)))
    for interface in {settings.interface, *(one for one, _ in settings.ingress)}:
        _reach(root, place("interfaces", ("interface", interface)))
    return root


def found(data: Any, settings: Settings) -> Configuration:
    """What of the running configuration is ours."""
    root = _root(data)
    out: dict[Place, Value] = {}

    def take(where: Place, element: Any) -> None:
        value = _value(element)
        is_entry = where[-1][1] is not None
        out[where] = tuple(one for one in value if one[0] != "name") if is_entry else value  # type: ignore[misc]

    for parent, tag in (
        (("class-of-service", "forwarding-classes"), "class"),
        (("class-of-service",), "schedulers"),
    ):
        for element in _children(root, place(*parent), tag):
            name = _name(element)
            if settings.ours(name):
                take(place(*parent, (tag, name)), element)
    entries = [place("class-of-service", ("scheduler-maps", settings.name))]
    entries += [
        place("firewall", "family", family, ("filter", settings.name)) for family in settings.families
    ]
    for where in entries:
        element = _at(root, where)
        if element is not None:
            take(where, element)
    for where in (map_place(settings), *filter_places(settings)):
        element = _at(root, where)
        if element is not None and _value(element) == settings.name:
            take(where, element)
    return out


def control_class(data: Any, settings: Settings) -> str:
    """The forwarding class of routing protocols' queue."""
    for element in _children(_root(data), place("class-of-service", "forwarding-classes"), "class"):
        if _child_text(element, "queue-num") == str(CONTROL_QUEUE) and not settings.ours(_name(element)):
            return _name(element) or CONTROL_CLASS
    return CONTROL_CLASS


def refuse_others(data: Any, settings: Settings) -> None:
    """Raise `TidegateError` where somebody else's settings stand in the way, and for interfaces that the router does not have."""
    root = _root(data)
    if _at(root, place("interfaces", ("interface", settings.interface))) is None:
        raise TidegateError(
            f"the router has no interface {settings.interface} in its configuration; check the name"
        )
    for interface, unit in settings.ingress:
        for family in settings.families:
            where = place("interfaces", ("interface", interface), ("unit", str(unit)), "family", family)
            if _at(root, where) is None:
                raise TidegateError(f"the router has no `{shown(where)}`; give units that packets come in by")
            used = _at(root, where + place("filter"))
            named = [] if used is None else _filters_in(used, settings.name)
            if named:
                raise TidegateError(
                    f"{interface}.{unit} has a filter, {named[0]!r}, that somebody has set; remove it with `delete {shown(where)} "
                    "filter`, or give another interface"
                )
    above = _at(root, map_place(settings)[:-1])
    used_map = None if above is None else _child_text(above, "scheduler-map")
    if used_map not in (None, settings.name):
        raise TidegateError(
            f"{settings.interface} has the scheduler map {used_map!r} that somebody has set; remove it with "
            f"`delete {shown(map_place(settings))}`, or give another interface"
        )


def _filters_in(used: Any, mine: str) -> list[str]:
    """Names of others' filters for packets that come in: of `input`, and of an `input-list`."""
    names = []
    for tag, one in _below(used):
        if tag == "input":
            names.append(_child_text(one, "filter-name") or "")
        elif tag == "input-list":
            names.append((one.text or "").strip())
    return [name for name in names if name not in ("", mine)]


def difference(have: Configuration, want: Configuration) -> str:
    """The first place where two differ, for a message."""
    for where in sorted({*have, *want}, key=shown):
        if where not in have:
            return f"`{shown(where)}` is missing"
        if where not in want:
            return f"`{shown(where)}` is there"
        if have[where] != want[where]:
            return f"`{shown(where)}` differs"
    return "nothing differs"


# The way from one to the other.


def changes(
    have: Configuration, want: Configuration, *, everything: bool = False
) -> dict[Place, Value | None]:
    """New values by place, and `None` for what goes."""
    out: dict[Place, Value | None] = {
        where: value for where, value in want.items() if everything or have.get(where) != value
    }
    return out | {where: None for where in have if where not in want}


def edit(steps: Mapping[Place, Value | None], data: Any) -> Any:
    """The element for edit-config. `data` is the running configuration: a leaf that goes takes its empty parents along."""
    root, running = _element("configuration"), _root(data)
    for where, value in steps.items():
        if value is None:
            target = _reach(root, _emptied(running, where))
            target.set(OPERATION, "delete")
            continue
        target = _reach(root, where)
        if where[-1][1] is not None:
            target.set(OPERATION, "replace")
        _fill(target, value)
    return root


def _emptied(running: Any, where: Place) -> Place:
    """The place of the topmost element that holds nothing but what is at a place: of a leaf of ours, at most its `filter` or entry."""
    if where[-1][1] is not None:
        return where
    while where[-1][0] != "filter":
        above = _at(running, where[:-1])
        if above is None:
            break
        if {tag for tag, _ in _below(above)} - {"name", where[-1][0]}:
            break
        where = where[:-1]
        if where[-1][1] is not None:
            break
    return where


# Elements and values.


def _below(element: Any) -> list[tuple[str, Any]]:
    """Children that are elements, with their names."""
    return [(etree.QName(one).localname, one) for one in element if isinstance(one.tag, str)]


def _tag(name: str) -> str:
    return f"{{{XNM}}}{name}"


def _element(name: str) -> Any:
    return etree.Element(_tag(name), nsmap={None: XNM, "nc": BASE})


def _root(data: Any) -> Any:
    """The `configuration` element of a `data` element, empty if there is none."""
    return next((one for tag, one in _below(data) if tag == "configuration"), _element("configuration"))


def _name(element: Any) -> str | None:
    return _child_text(element, "name")


def _child_text(element: Any, tag: str) -> str | None:
    return next(((one.text or "").strip() for found, one in _below(element) if found == tag), None)


def _children(root: Any, parent: Place, tag: str) -> list[Any]:
    above = _at(root, parent)
    return [] if above is None else [one for found, one in _below(above) if found == tag]


def _at(root: Any, where: Place) -> Any | None:
    for tag, name in where:
        below = (one for found, one in _below(root) if found == tag)
        root = next((one for one in below if name is None or _name(one) == name), None)
        if root is None:
            return None
    return root


def _reach(root: Any, where: Place) -> Any:
    """The element at a place, made with those above it if it is not there."""
    for tag, name in where:
        below = _at(root, ((tag, name),))
        if below is None:
            below = etree.SubElement(root, _tag(tag))
            if name is not None:
                etree.SubElement(below, _tag("name")).text = name
        root = below
    return root


def _fill(element: Any, value: Value) -> None:
    if isinstance(value, str):
        element.text = value or None
        return
    # The key of a list entry comes first.
    for tag, inner in sorted(value, key=lambda one: one[0] != "name"):
        _fill(etree.SubElement(element, _tag(tag)), inner)


def _value(element: Any) -> Value:
    """Of an element, in the form that `_sorted` gives."""
    children = _below(element)
    if not children:
        text = (element.text or "").strip()
        return _rate(text) if etree.QName(element).localname == "rate" else text
    return _sorted((tag, _value(one)) for tag, one in children)


def _rate(text: str) -> str:
    """Junos shows 10000000 as 10m."""
    suffix = re.fullmatch(r"(\d+)([kmg])", text)
    return text if suffix is None else str(int(suffix[1]) * SUFFIXES[suffix[2]])


def _sorted(values: Iterable[tuple[str, Value]]) -> tuple[tuple[str, Value], ...]:
    """In an order of its own, but for terms, whose order counts."""
    return tuple(sorted(values, key=lambda one: (one[0], "" if one[0] == "term" else repr(one[1]))))
