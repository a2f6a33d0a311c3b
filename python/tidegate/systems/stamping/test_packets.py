"""`stamp.p4` on single packets: interpreter and JIT do what the model does, whatever the packet and the format are."""

from __future__ import annotations

from functools import cache
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from tidegate.systems.stamping.format import Format
from tidegate.systems.stamping.model import REASONS, find, stamped, with_checksum
from tidegate.systems.stamping.setup import program

Engine = Literal["interp", "jit"]
ENGINES: list[Engine] = ["interp", "jit"]
MAC = "02:00:00:00:00:02"
ADDRESSES = bytes.fromhex("020000000002020000000001")
PORT = 1
# The queue's bytes can be set, which only this quantity has.
FORMATS = [
    Format(65536, 8, "bytes"),
    Format(100_000, 1, "bytes", "ind"),
    Format(300_000, 2, "bytes"),
    Format(300_000, 4, "bytes", "sum"),
    Format(300_000, 16, "bytes", "sum", "shim"),
    Format(300_000, 32, "bytes", "max"),
    Format("4 MiB", 32, "bytes", "sum_squ"),
    Format("1 MiB", 16, "bytes", "sum_squ", own=True),
    Format("1 MiB", 8, "bytes", bins="log"),
    Format("1 MiB", 4, "bytes", "max", "shim", bins="log", mantissa=1, own=True),
    Format("1 MiB", 8, "bytes", "vector", capacity=7),
    Format("1 MiB", 16, "bytes", "vector", capacity=12),
    Format("1 MiB", 32, "bytes", "vector", capacity=9),
    Format("1 MiB", 8, "bytes", "vector", bins="log", mantissa=4, capacity=37),
    Format("1 MiB", 32, "bytes", "vector", "shim", capacity=14),
    Format("1 MiB", 16, "bytes", "vector", "shim", capacity=60),
    Format("1 MiB", 32, "bytes", "vector", "shim", capacity=63),
]


def name(form: Format) -> str:
    log = f"-log{form.mantissa}" if form.bins == "log" else ""
    return f"{form.carrier}-{form.fold}-{form.bits}{log}" + f"-{form.capacity}" * (form.fold == "vector")


class Switch:
    """A switch that forwards to a port that stamps, with a chosen number of bytes in its queue."""

    def __init__(self, form: Format, engine: Engine) -> None:
        self.form = form
        self.scale = form.scale("10 Gbit/s", mtu=9000)
        self.pipeline = program(form).pipeline(engine)
        self.pipeline.table_add("forward", [MAC], "to_port", [PORT])
        self.pipeline.table_add("ports", [PORT], "stamp", list(self.scale))

    def counts(self) -> list[int]:
        return [int(packets) for packets, _ in self.pipeline.counter_read("unstamped")]

    def send(self, frame: bytes, queue: int) -> tuple[bytes, list[int]]:
        """What leaves, and what is counted."""
        before = self.counts()
        self.pipeline.register_write("backlog", [queue], PORT)
        ((port, out),) = self.pipeline.process(0, 0, frame)
        assert port == PORT
        return out, [after - count for count, after in zip(before, self.counts(), strict=True)]


@cache
def switches(form: Format) -> list[Switch]:
    """A switch for each engine."""
    return [Switch(form, engine) for engine in ENGINES]


def tlv(kind: int, data: bytes) -> bytes:
    return bytes([kind, 2 + len(data)]) + data


def fields(form: Format) -> st.SearchStrategy[bytes]:
    """A stamp's field: mostly of this version, and often with few hops."""
    last = st.integers(0, 15) | st.integers(0, 63) | st.integers(0, 255)
    value = st.just(bytes(form.size - 1)) | st.binary(min_size=form.size - 1, max_size=form.size - 1)
    codes = st.lists(st.integers(0, form.largest), min_size=form.capacity, max_size=form.capacity)
    valid = codes.map(lambda many: b"".join(code.to_bytes(form.width) for code in many))
    return st.builds(lambda value, last: value + bytes([last]), value | valid, last)


@st.composite
def options(draw: st.DrawFn, form: Format) -> bytes:
    """Options of an IPv4 header: any, mostly with one stamp of the right length, padded."""
    others = st.one_of(
        st.just(b"\1"),
        st.just(b"\1\1"),
        st.builds(tlv, st.integers(2, 255).filter(lambda kind: kind != 30), st.binary(max_size=9)),
    )
    rare = st.one_of(
        st.just(b"\0"), st.builds(tlv, st.just(30), st.binary(max_size=9)), st.binary(max_size=4)
    )
    room = 40 - 2 - form.size
    before = b"".join(draw(st.lists(others, max_size=4)))[: draw(st.integers(0, room))]
    stamp = tlv(30, draw(fields(form)))
    parts = [before if before in (b"", b"\1") or draw(st.booleans()) else b"\1" * len(before), stamp]
    parts += draw(st.lists(others | rare, max_size=2))
    if draw(st.integers(0, 7)) == 0:
        parts = draw(st.permutations(parts))
    whole = b"".join(parts)[:40]
    return whole + bytes(-len(whole) % 4)


@st.composite
def frames(draw: st.DrawFn, form: Format) -> bytes:
    """Frames that have the field, with anything that can be wrong with it."""
    head = ADDRESSES + (b"" if draw(st.integers(0, 3)) else bytes.fromhex("81000007"))
    payload = draw(st.binary(max_size=40))
    if form.carrier == "shim":
        kind = draw(st.sampled_from([0x0800, 0x0800, 0x0800, 0x86DD, 0x0806, 0x88B5]))
        size = draw(st.sampled_from([form.size, form.size, form.size, form.size, form.size + 1, 0]))
        rest = bytes.fromhex("88b5") + kind.to_bytes(2) + bytes([size]) + draw(fields(form)) + payload
    else:
        extra = draw(options(form))
        packet = bytes(IP(src="10.0.0.1", dst="10.0.0.2", proto=253, options=[]) / payload)
        first = bytes([0x45 + len(extra) // 4])
        length = (len(packet) + len(extra)).to_bytes(2)
        rest = b"\x08\x00" + first + packet[1:2] + length + packet[4:20] + extra + payload
    frame = with_checksum(head + rest) if form.carrier == "option" else head + rest
    return frame[: draw(st.integers(14, len(frame)))] if draw(st.integers(0, 15)) == 0 else frame


QUANTITIES = st.integers(0, 2**21) | st.integers(0, 2**32 - 1)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS, ids=name)
def test_both_engines_do_what_the_model_does(form: Format) -> None:
    seen: list[str] = []

    @given(frame=frames(form), queue=QUANTITIES)
    def compare(frame: bytes, queue: int) -> None:
        for switch in switches(form):
            out, reason = stamped(form, frame, queue + len(frame) * form.own, switch.scale)
            assert switch.send(frame, queue) == (out, [int(each == reason) for each in REASONS])
        seen.append(reason or ("stamped" if out != frame else "left alone"))
        if reason is None and form.carrier == "option" and isinstance(find(form, frame), int):
            packet = Ether(out)[IP]
            said = packet.chksum
            del packet.chksum
            assert IP(bytes(packet)).chksum == said

    compare()
    assert "stamped" in seen


STAMP = tlv(30, bytes.fromhex("0500"))
CASES: dict[str, tuple[bytes, str | None]] = {
    "alone": (STAMP, None),
    "at an odd offset": (b"\1" + STAMP, None),
    "behind another option": (tlv(148, bytes(2)) + STAMP, None),
    "before others": (STAMP + b"\1" + tlv(7, bytes(5)), None),
    "last of 40 bytes": (b"\1" * 36 + STAMP, None),
    "before the end of the options": (STAMP + b"\0" + STAMP[:3], None),
    "behind the end of the options": (b"\0" * 4 + STAMP, "left alone"),
    "no stamp": (tlv(148, bytes(2)), "left alone"),
    "too long": (tlv(30, bytes(3)), "malformed"),
    "too short": (tlv(30, bytes(1)), "malformed"),
    "longer than the header": (b"\1" + STAMP[:3], "malformed"),
    "without length": (b"\1\1\1\x1e", "malformed"),
    "another's length is 0": (STAMP + b"\7\0\0\0", "malformed"),
    "another's length is 1": (b"\7\1\1\1" + STAMP, "malformed"),
    "another is longer than the header": (STAMP + b"\7\5\1\1", "malformed"),
    "two": (STAMP + STAMP, "repeated"),
    "two, the second too long": (STAMP + tlv(30, bytes(6)), "repeated"),
    "version 1": (tlv(30, bytes([5, 0x40])), "version"),
    "version 3": (tlv(30, bytes([5, 0xFF])), "version"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_what_is_stamped(case: str, engine: Engine) -> None:
    extra, expected = CASES[case]
    extra += bytes(-len(extra) % 4)
    frame = bytes(Ether(ADDRESSES + b"\x08\0") / IP(src="10.0.0.1", dst="10.0.0.2", ihl=5 + len(extra) // 4))
    frame = with_checksum(frame[:34] + extra + bytes(20))
    form = Format(65536, 8, "bytes")
    # 40 of 256 bins.
    out, counts = Switch(form, engine).send(frame, 10_300)
    reason = expected if expected in REASONS else None
    assert counts == [int(each == reason) for each in REASONS]
    at = frame.rindex(STAMP) + 2 if expected is None and case != "before the end of the options" else 36
    changed = frame[:at] + bytes([40, 1]) + frame[at + 2 :]
    assert out == (frame if expected else with_checksum(changed))


def test_a_truncated_header_is_malformed() -> None:
    frame = bytes(Ether(ADDRESSES + b"\x08\0") / IP(ihl=6)) + STAMP
    for engine in ENGINES:
        switch = Switch(Format(65536, 8, "bytes"), engine)
        for length in range(34, 38):
            assert switch.send(frame[:length], 10_300) == (frame[:length], [1, 0, 0, 0])
        # Not even an IPv4 header.
        assert switch.send(frame[:33], 10_300) == (frame[:33], [0, 0, 0, 0])


def test_hops_stay_at_63_and_a_full_vector_is_left_alone() -> None:
    for engine in ENGINES:
        frame = with_checksum(bytes(Ether(ADDRESSES + b"\x08\0") / IP(ihl=6)) + tlv(30, bytes([5, 63])))
        out, counts = Switch(Format(65536, 8, "bytes"), engine).send(frame, 10_300)
        assert (out[-2:], counts) == (bytes([40, 63]), [0, 0, 0, 0])
        vector = Format(65536, 8, "bytes", "vector", capacity=1)
        full = frame[:-1] + b"\1"
        assert Switch(vector, engine).send(full, 10_300) == (full, [0, 0, 1, 0])


def test_a_port_without_an_entry_does_not_stamp() -> None:
    switch = Switch(Format(65536, 8, "bytes"), "jit")
    switch.pipeline.table_clear("ports")
    frame = with_checksum(bytes(Ether(ADDRESSES + b"\x08\0") / IP(ihl=6)) + STAMP)
    assert switch.send(frame, 10_300) == (frame, [0, 0, 0, 0])
