"""The pacing option: bytes, numbers, and what the P4 program makes of them."""

from __future__ import annotations

import pytest

from tidegate import TidegateError
from tidegate.control import Controller, SwitchApi
from tidegate.network import Network
from tidegate.systems.pacing.format import (
    LARGEST,
    OPTION,
    Keys,
    Kind,
    PacingOption,
    halfsiphash,
    number,
    packed,
)
from tidegate.systems.pacing.setup import pacing


@pytest.mark.parametrize("value", [0, 1, 2047, 2048, 2049, 4095, 4096, 99_750, 10**8, LARGEST])
def test_a_number_is_rounded_by_less_than_a_thousandth(value: int) -> None:
    down, up = number(packed(value)), number(packed(value, up=True)) if value < LARGEST else LARGEST
    assert down <= value <= up
    assert up - down <= value / 1023


def test_small_numbers_are_exact() -> None:
    assert [number(packed(value)) for value in range(2048)] == list(range(2048))


def test_numbers_that_do_not_fit_are_refused() -> None:
    for value in (-1, LARGEST + 1):
        with pytest.raises(TidegateError, match="no number for a pacing option"):
            packed(value)


def test_an_option_is_read_as_it_was_written() -> None:
    option = PacingOption(Kind.TRACE, 99_712, 7, link=3, sequence=0xAB, hops=2, key=1, check=0x123456)
    assert option.data.hex() == "4a03361600 07ab123456".replace(" ", "")
    assert PacingOption.of(option.data) == option
    assert OPTION == ("ip", 94)


def test_the_hash_is_that_of_the_reference_code() -> None:
    # Its test vectors: key 00 01 .. 07, a message without bytes.
    assert halfsiphash(0x0302010007060504, ()) == 0x5B9F35A9


@pytest.mark.parametrize("data", [b"", bytes(9), bytes(11), b"\x80" + bytes(9), b"\x28" + bytes(9)])
def test_another_length_or_version_is_no_option(data: bytes) -> None:
    assert PacingOption.of(data) is None


def test_keys_of_64_bits_reach_the_switch() -> None:
    class Reader(Controller):
        def start(self, switch: SwitchApi) -> None:
            assert switch.register_read("keys").tolist() == list(keys.values)
            switch.note("read", 1.0)

    keys = Keys((1, 2**64 - 1))
    net = Network()
    switch = pacing(net, "s", keys=keys)
    net.link(net.host("h"), switch, rate="1 Gbit/s", delay="1 us")
    net.control(Reader(), switch)
    assert net.run("1 ms").notes.height == 1
