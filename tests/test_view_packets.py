"""The packets and flows of a switch's port in the dashboard: what is read of headers, captures that follow each other, and the page."""

from __future__ import annotations

import os
import socket
import struct
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from namespaces import place
from switches import LEARNING, MACS, between, ports
from tidegate import _core, p4
from tidegate.specs import Wire
from tidegate.switch.running import LiveSwitch
from tidegate.view import packets
from tidegate.view.capturing import LONG, Capturing
from tidegate.view.flows import MOST_FLOWS, PortFlows, described
from tidegate.view.page import Page
from tidegate.view.switching import Switching
from viewers import Seen, Shown, until

ETHERNET = MACS[2] + MACS[1]


def ipv4(protocol: int, transport: bytes, tos: int = 0, fragment: int = 0) -> bytes:
    head = struct.pack(
        ">BBHHHBBH4s4s",
        0x45,
        tos,
        20 + len(transport),
        0,
        fragment,
        64,
        protocol,
        0,
        b"\x0a\0\0\1",
        b"\x0a\0\0\2",
    )
    return b"\x08\x00" + head + transport


def ipv6(protocol: int, transport: bytes, tos: int = 0) -> bytes:
    ends = socket.inet_pton(socket.AF_INET6, "2001:db8::1") + socket.inet_pton(socket.AF_INET6, "2001:db8::2")
    return (
        b"\x86\xdd"
        + struct.pack(">IHBB", 6 << 28 | tos << 20, len(transport), protocol, 64)
        + ends
        + transport
    )


def tcp(source: int = 5001, target: int = 80, flags: int = 0x12) -> bytes:
    return struct.pack(">HHIIBBHHH", source, target, 7, 9, 0x50, flags, 0, 0, 0)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (ipv4(6, tcp(), tos=3), ("TCP 10.0.0.1:5001 > 10.0.0.2:80", "SYN ACK", 7, 9, "CE")),
        (ipv4(17, struct.pack(">HHHH", 53, 9, 8, 0), tos=2), ("UDP 10.0.0.1:53 > 10.0.0.2:9", "", None, None, "ECT(0)")),
        (ipv4(1, b"\x08\0"), ("ICMP 10.0.0.1 > 10.0.0.2", "", None, None, "")),
        (ipv4(47, b""), ("IP 47 10.0.0.1 > 10.0.0.2", "", None, None, "")),
        # A fragment has no ports; one that is cut off, only what is there.
        (ipv4(6, tcp(), fragment=100), ("TCP 10.0.0.1 > 10.0.0.2", "", None, None, "")),
        (ipv4(6, tcp()[:6]), ("TCP 10.0.0.1:5001 > 10.0.0.2:80", "", None, None, "")),
        (ipv4(6, tcp())[:12], ("IPv4 02:00:00:00:00:01 > 02:00:00:00:00:02", "", None, None, "")),
        (b"\x81\x00\0\5" + ipv4(6, tcp()), ("TCP 10.0.0.1:5001 > 10.0.0.2:80", "SYN ACK", 7, 9, "")),
        (ipv6(6, tcp(), tos=1), ("TCP [2001:db8::1]:5001 > [2001:db8::2]:80", "SYN ACK", 7, 9, "ECT(1)")),
        (ipv6(0, b"\x11\0" + bytes(6) + struct.pack(">HHHH", 1, 2, 8, 0)), ("UDP [2001:db8::1]:1 > [2001:db8::2]:2", "", None, None, "")),
        (b"\x88\xb5", ("0x88b5 02:00:00:00:00:01 > 02:00:00:00:00:02", "", None, None, "")),
        (b"", ("02:00:00:00:00:01 > 02:00:00:00:00:02", "", None, None, "")),
    ],
)  # fmt: skip
def test_what_headers_say(frame: bytes, expected: tuple[Any, ...]) -> None:
    assert described(ETHERNET + frame) == expected


def written(path: Path, *frames: bytes, at_s: int = 1) -> str:
    records = [struct.pack("<IIII", at_s, 0, len(frame), 1000) + frame for frame in frames]
    path.write_bytes(bytes(24) + b"".join(records))
    return str(path)


def test_flows_go_on_in_the_next_capture(tmp_path: Path) -> None:
    one, two = ETHERNET + ipv4(6, tcp(1)), ETHERNET + ipv4(6, tcp(2))
    said = {
        "number": 1,
        "segment": 1,
        "file": written(tmp_path / "1", one, two, one),
        "active_s": 0.0,
        "only": "",
    }
    flows = PortFlows(said)
    first = flows.look(said)
    assert first["flows"] == [
        ["TCP 10.0.0.1:1 > 10.0.0.2:80", None, 2, 2000],
        ["TCP 10.0.0.1:2 > 10.0.0.2:80", None, 1, 1000],
    ]
    assert len(first["packets"]) == 3
    name = "TCP 10.0.0.1:2 > 10.0.0.2:80"
    said |= {"segment": 2, "file": written(tmp_path / "2", two), "active_s": 2.0, "only": name}
    second = flows.look(said)
    # 2000 bytes of each in the 2 s that were captured.
    assert sorted(second["flows"]) == [
        ["TCP 10.0.0.1:1 > 10.0.0.2:80", pytest.approx(0.008), 2, 2000],
        ["TCP 10.0.0.1:2 > 10.0.0.2:80", pytest.approx(0.008), 2, 2000],
    ]
    assert (second["only"], [packet[1] for packet in second["packets"]]) == (name, [name, name])
    assert flows.look(said | {"only": "none"})["only"] == ""
    flows.close()


def test_the_flows_of_a_scan_are_not_kept(tmp_path: Path) -> None:
    frames = [ETHERNET + ipv4(6, tcp(number)) for number in range(2 * MOST_FLOWS)]
    said = {"number": 1, "segment": 1, "file": written(tmp_path / "1", *frames), "active_s": 0.0, "only": ""}
    found = PortFlows(said).look(said)
    assert len(found["flows"]) + found["left_out"] == MOST_FLOWS


def test_a_busy_port_is_captured_for_a_part_of_the_time() -> None:
    """An average of 1 MiB/s; nothing is left open."""
    core = _core.Simulation(1)
    a, b = core.host("a"), core.host("b")
    wire = Wire(10**9, 0, None, None)
    port, _ = core.link(a, b, wire, wire)
    now = 0.0
    before = set(os.listdir("/proc/self/fd"))
    capturing = Capturing(core, port, {"flow": 0}, lambda: now)
    assert capturing.say()["segment"] == 1
    assert capturing._file is not None
    os.truncate(f"/proc/self/fd/{capturing._file}", 8 * LONG)
    now = 0.5
    said = capturing.say()
    assert (said["segment"], said["sampled"], said["active_s"]) == (1, True, 0.5)
    now = 1.9
    assert (capturing.say()["segment"], capturing.say()["active_s"]) == (1, 0.5)
    now = 2.1
    assert capturing.say()["segment"] == 2
    now = 2.6
    assert capturing.say()["active_s"] == pytest.approx(1.0)
    capturing.close()
    assert set(os.listdir("/proc/self/fd")) == before
    # What captures already is said.
    first, second = Capturing(core, port, {}), Capturing(core, port, {})
    assert "is captured already" in second.say()["problem"]
    second.close()
    first.close()


@pytest.mark.live
@pytest.mark.untimed
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_the_packets_of_a_switch_s_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.view.switching.WORTH", 0)
    frame = ETHERNET + ipv4(6, tcp() + bytes(100))
    with place(2) as two, Page() as page, Seen(page) as seen:
        live = LiveSwitch(p4.compile(LEARNING), ports(two, "auto"))
        between(live)
        with live:
            looking = Switching(live, "learning")

            ended = threading.Event()

            def go_on() -> None:
                while not ended.wait(0.02):
                    two.hosts[0].send(frame)
                    looking.update(page)

            going = threading.Thread(target=go_on)
            going.start()
            try:
                # "p2: sent", a row of the second port.
                seen.say(trace=3)
                header = seen.until(lambda header: header.get("trace") and header["trace"]["packets"])
            finally:
                ended.set()
                going.join()
            assert header["trace"]["name"] == "p2"
            (flow,) = {row[0] for row in header["trace"]["flows"]}
            assert flow == "TCP 10.0.0.1:5001 > 10.0.0.2:80"
            assert header["trace"]["packets"][0][1:6] == [flow, "SYN ACK", 7, 9, len(frame)]
            # Nobody looks: nothing is captured.
            looking._traced({}, 0)
            assert looking._capturing is None


def test_a_port_that_does_not_exist_is_not_captured() -> None:
    counted = dict.fromkeys(("received", "sent", "received_bytes", "sent_bytes"), 0)
    switch: Any = SimpleNamespace(
        ports=[SimpleNamespace(number=1, interface="e0", rate=None)],
        api=SimpleNamespace(port_read=lambda port: SimpleNamespace(queues=[])),
        statistics=lambda: {"ports": [counted]},
        notes={},
    )
    looking, page = Switching(switch, "s"), Shown()
    for said in ({"trace": 2}, {"trace": -1}, {"only": "a"}):
        assert looking._traced(said, 1) is None
    looking.update(page)  # type: ignore[arg-type]
    assert page.shown[-1][0]["trace"] is None


@pytest.mark.slow
def test_a_port_is_chosen_in_a_browser(browser: Any, tmp_path: Path) -> None:
    names = ["e0: received", "e0: sent"]
    about: dict[str, Any] = {
        "title": "x",
        "kind": "switch",
        "nodes": [["s", "switch"], ["e0", "host"]],
        "links": [[1, 0, *names]],
    }
    about |= {"rates_mbps": [None, None], "ports": names, "queues": []}
    said: dict[str, Any] = {
        "flow": 0,
        "name": "e0",
        "number": 1,
        "segment": 1,
        "active_s": 1.0,
        "problem": "",
        "sampled": True,
    }
    said["file"] = written(tmp_path / "1", ETHERNET + ipv4(6, tcp(1)), ETHERNET + ipv4(6, tcp(2)))
    heard: dict[str, Any] = {"trace": -1, "only": ""}
    with Page() as page:

        def show() -> bool:
            heard.update(page.heard(0.05))
            trace = {**said, "only": heard["only"]} if heard["trace"] >= 0 else None
            page.show({"t": 1, "notes": {}, "trace": trace}, {"port rate_mbps": [5.0, 1.0]})
            return True

        page.begin(about)
        made = browser.new_page()
        made.goto(page.url)
        until(lambda: show() and made.locator("#ports button.flow").count() == 2)
        made.click("#ports tbody tr:first-child button.flow")
        until(lambda: show() and made.locator("#seen tbody tr").count() == 2)
        assert made.inner_text("#chosen") == "e0"
        assert made.inner_text("#problem") == "a sample: the port carries more than can be shown"
        assert made.locator("#packets tbody tr").count() == 2
        made.focus("#seen tbody tr:first-child button")
        made.keyboard.press("Enter")
        until(lambda: show() and made.locator("#packets tbody tr").count() == 1)
        assert made.inner_text("#chosen").startswith("TCP 10.0.0.1:")
        made.click("#ports tbody tr:first-child button.flow")
        until(lambda: show() and made.locator("#traced").is_hidden())
        made.close()


def test_of_a_flow_s_packets_the_newest_alone_are_taken_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(number: int, frame: bytes) -> bytes:
        return struct.pack("<IIII", number, 500_000_000, len(frame), 1500) + frame

    taken, file = [], tmp_path / "trace.pcap"
    monkeypatch.setattr(packets, "tcp_of", lambda transport: taken.append(1) or ("ACK", 7, 9))
    of, other = (ETHERNET + ipv4(6, tcp(port)) for port in (5001, 5002))
    last = record(100, of)
    file.write_bytes(bytes(24) + b"".join(record(n, of if n % 2 else other) for n in range(100)) + last[:30])
    said = {"number": 1, "file": str(file), "ends": [["10.0.0.1", 5001], ["10.0.0.2", 80]]}
    flow = packets.Packets(said)
    first = flow.look(said)["packets"]
    assert first[-1] == [99.5, "5001 > 80", "ACK", 7, 9, 1500, ""]
    assert [packet[0] for packet in first] == [n + 0.5 for n in range(21, 100, 2)]
    assert len(taken) == len(first) == packets.SHOWN
    with file.open("ab") as more:
        more.write(last[30:])
    assert [packet[0] for packet in flow.look(said)["packets"]] == [packet[0] for packet in first[1:]] + [
        100.5
    ]
    assert len(taken) == packets.SHOWN + 1
    flow.close()
