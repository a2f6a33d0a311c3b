"""A controller whose program is written for timestamps in microseconds refuses a switch that counts in nanoseconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidegate import TidegateError
from tidegate.control import Controller
from tidegate.network import Link, Network, Switch
from tidegate.p4 import Program
from tidegate.systems.aqm import setup as aqm
from tidegate.systems.combined import setup as combined
from tidegate.systems.meter import setup as meter
from tidegate.systems.meter.experiments.peer_meters import BcPqpMeters
from tidegate.systems.meter.experiments.standard_meters import StandardMeters
from tidegate.systems.pacing.setup import pacing
from tidegate.systems.separation import setup as separation
from tidegate.systems.separation.behaviour import Observer
from tidegate.systems.stamping.format import Format
from tidegate.systems.stamping.setup import stamping

FORM = Format("4 ms", bits=8, carrier="shim")
REFUSED = 'the switch s has the clock 1 ns, and the program of its controller counts in 1 us; give the switch clock="1 us"'

Attach = Callable[[Network, Switch, Link], object]


@pytest.mark.parametrize(
    ("program", "attach"),
    [
        (lambda: meter.program(), lambda net, switch, link: meter.meter(net, switch, [])),
        (lambda: meter.program("fair"), lambda net, switch, link: meter.fair(net, switch, [])),
        (
            lambda: meter.program("standard"),
            lambda net, switch, link: net.control(
                StandardMeters([], ports={}, scheme="rfc2697", burst=1), switch
            ),
        ),
        (
            lambda: meter.program("bcpqp"),
            lambda net, switch, link: net.control(BcPqpMeters([], ports={}, sizes=[]), switch),
        ),
        (lambda: aqm.program("dualpi2"), lambda net, switch, link: aqm.manage(net, switch, link)),
        (
            lambda: separation.program(),
            lambda net, switch, link: net.control(Observer(), switch),
        ),
        (lambda: combined.program(FORM), lambda net, switch, link: combined.meter(net, switch, [])),
        (lambda: combined.program(FORM), lambda net, switch, link: combined.manage(net, switch, link)),
        (lambda: combined.program(FORM), lambda net, switch, link: combined.unmanaged(net, switch)),
        # To all switches of the network.
        (
            lambda: meter.program("bcpqp"),
            lambda net, switch, link: net.control(BcPqpMeters([], ports={}, sizes=[])),
        ),
    ],
)
def test_another_clock_is_refused_where_it_is_written(program: Callable[[], Program], attach: Attach) -> None:
    net = Network()
    switch = net.switch("s", program(), queues=2, clock="1 ns")
    link = net.link(switch, net.host("a"), rate="1 Gbit/s", delay="1 ms")
    with pytest.raises(TidegateError) as refused:
        attach(net, switch, link)
    assert str(refused.value) == REFUSED
    assert not net.controllers


def test_a_pacing_switch_with_another_clock_is_refused() -> None:
    with pytest.raises(TidegateError) as refused:
        pacing(Network(), "s", clock="1 ns")
    assert str(refused.value) == REFUSED


def test_a_switch_that_is_made_after_its_controller_is_refused_at_the_start() -> None:
    class Microseconds(Controller):
        clock = "1 us"

    net = Network()
    net.control(Microseconds())
    net.switch("s", meter.program(), clock="1 ns")
    with pytest.raises(TidegateError) as refused:
        net.run("1 ms")
    assert str(refused.value) == REFUSED


def test_others_take_any_clock() -> None:
    net = Network()
    assert stamping(net, "s", FORM, clock="1 ns").clock == 1_000
    net.control(Controller())
    assert combined.combine(net, "t", FORM).clock == 1_000_000
